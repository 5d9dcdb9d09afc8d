#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace quipu {

/// Remembers the tokens of short words, one word a slot, the latest wins. About 2 MB; for one thread at a time.
class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  /// Appends the tokens of `word`, from the cache or else from `segment(word, tokens)`, which appends them.
  template <typename Segment>
  void append(std::string_view word, std::vector<std::int32_t>& tokens, Segment&& segment) {
    if (word.size() > kMaxBytes) return segment(word, tokens);
    Slot& slot = slots_[std::hash<std::string_view>{}(word) % kSlots];
    if (slot.bytes == word.size() && std::memcmp(slot.word.data(), word.data(), word.size()) == 0) {
      tokens.insert(tokens.end(), slot.tokens.begin(), slot.tokens.begin() + slot.count);
      return;
    }
    const std::size_t before = tokens.size();
    segment(word, tokens);
    const std::span<const std::int32_t> made(tokens.data() + before, tokens.size() - before);
    if (made.size() > kMaxTokens) return;
    slot.bytes = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(made.size());
    std::copy(word.begin(), word.end(), slot.word.begin());
    std::copy(made.begin(), made.end(), slot.tokens.begin());
  }

 private:
  static constexpr std::size_t kSlots = 32768;
  static constexpr std::size_t kMaxBytes = 30;
  static constexpr std::size_t kMaxTokens = 8;

  struct Slot {
    std::uint8_t bytes = 0;  // 0: empty (no word is)
    std::uint8_t count = 0;
    std::array<char, kMaxBytes> word;
    std::array<std::int32_t, kMaxTokens> tokens;
  };

  std::vector<Slot> slots_;
};

}  // namespace quipu
