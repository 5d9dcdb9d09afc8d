#pragma once
#include <cstdint>
#include <string_view>

namespace quipu {

/// Counts bytes and blank-separated words of a text that comes in pieces; a word may span pieces.
class WordCounter {
 public:
  void add(std::string_view piece) {
    bytes_ += piece.size();
    for (const char c : piece) {
      const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
      words_ += in_word_ || is_blank ? 0 : 1;
      in_word_ = !is_blank;
    }
  }

  /// A word ends here, whatever comes next.
  void end_word() { in_word_ = false; }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t words() const { return words_; }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t words_ = 0;
  bool in_word_ = false;
};

}  // namespace quipu
