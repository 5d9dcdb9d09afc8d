#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace quipu {

class Tokenizer;

/// How many bytes at the end of `bytes` begin a UTF-8 character that is not finished: 0 to 3.
std::size_t unfinished_utf8(std::string_view bytes);

/// Hands bytes on without splitting a character of UTF-8: a character that has begun is held back until it is whole or
/// turns out to be none. Bytes that are no UTF-8 pass through unchanged; everything that came in comes out, in order.
class Utf8Stream {
 public:
  /// Takes `bytes` and returns what can be shown now.
  std::string push(std::string_view bytes);
  /// Returns what was held back (0 to 3 bytes).
  std::string flush();

 private:
  std::string held_;
};

/// Text of a stream of tokens, as characters become whole. The tokenizer must outlive it.
class TokenStream {
 public:
  /// `previous`: the token that the stream goes on from, such as the last one of a prompt; -1: none.
  explicit TokenStream(const Tokenizer& tokenizer, std::int32_t previous = -1)
      : tokenizer_(&tokenizer), previous_(previous) {}

  std::string push(std::int32_t id);
  std::string flush() { return characters_.flush(); }

 private:
  const Tokenizer* tokenizer_;
  std::int32_t previous_;
  Utf8Stream characters_;
};

}  // namespace quipu
