#pragma once
#include <array>
#include <string_view>

#include "text/byte_pairs.h"
#include "text/piece_tree.h"

namespace quipu {

/// Finds tokens that stand in a text literally: the leftmost one, and of those that begin there the longest.
class TokenMatcher {
 public:
  struct Token {
    std::string_view bytes;  ///< not empty
    std::int32_t id;
  };
  struct Found {
    enum class Kind { kNone, kToken, kOpen };
    Kind kind = Kind::kNone;
    std::size_t begin = 0;  ///< of the token; for kOpen: where one may have begun
    std::size_t end = 0;
    std::int32_t id = -1;
  };

  TokenMatcher() = default;
  /// InputError naming the token where one is there twice.
  explicit TokenMatcher(std::span<const Token> tokens);

  bool empty() const { return empty_; }

  /// The first token in `text` from `from`. Where the text is `open`, more of it may follow: kOpen where that decides.
  Found find(std::string_view text, std::size_t from, bool open) const;

  /// Whether the two bytes stand side by side inside a token.
  bool joins(char left, char right) const { return pairs_.contains(left, right); }

 private:
  bool empty_ = true;
  std::array<bool, 256> first_{};
  BytePairs heads_;                // the first two bytes
  std::array<bool, 256> alone_{};  // tokens of one byte
  BytePairs pairs_;
  PieceTree tree_;
};

}  // namespace quipu
