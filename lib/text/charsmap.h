#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// SentencePiece's compiled rules of normalization: at each place of a text the longest rule that stands there replaces
/// what it matches. (A double array in darts-clone's layout, then the replacements, each ended by a zero byte.)
class Charsmap {
 public:
  struct Rule {
    std::size_t length = 0;  ///< of what is replaced; 0: no rule stands here
    std::string_view replacement;
    bool undecided = false;  ///< the text ended where a longer rule could go on
  };

  Charsmap() = default;
  /// InputError, with both numbers, where `blob` is no such table.
  explicit Charsmap(std::string_view blob);

  Rule find(std::string_view text) const;

  /// Whether an ASCII letter with a blank (U+0020) behind it stays as it is, whatever is around the two.
  bool keeps_before_blank(char letter) const { return keeps_[static_cast<unsigned char>(letter)]; }

 private:
  std::uint32_t base(std::uint32_t unit, std::uint32_t position) const;
  std::string_view replacement(std::uint32_t value) const;
  void explore();

  std::vector<std::uint32_t> units_;
  std::string replacements_;
  std::array<bool, 256> begins_{};
  std::array<bool, 256> keeps_ = [] {
    std::array<bool, 256> all{};
    all.fill(true);
    return all;
  }();
};

}  // namespace quipu
