#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_pairs.h"
#include "text/piece_tree.h"
#include "text/sentence_model.h"

namespace quipu {

/// Cuts normalized text, blanks as U+0020, into the pieces of a SentencePiece model, as its library does. Const and
/// safe to use from several threads.
class SentenceSegmenter {
 public:
  /// InputError where pieces are empty, twice or without a finite score, where there is not one unknown piece, and
  /// where bytes are to be pieces and are not.
  explicit SentenceSegmenter(const SentenceModel& model);

  /// Appends the tokens of `text`. Of bytes that are no UTF-8 each is a character.
  void segment(std::string_view text, std::vector<std::int32_t>& tokens) const;

  /// Whether text may be cut between two characters, of which the first ends with `last` and the second is what `after`
  /// begins with.
  bool may_cut(char last, std::string_view after) const;

  /// Bytes of the longest user-defined symbol at the beginning of `text`, which is not normalized; 0: none. `undecided`
  /// is set where the text ended and a longer one could go on.
  std::size_t user_symbol(std::string_view text, bool& undecided) const;
  bool has_user_symbols() const { return has_user_symbols_; }
  /// Whether the two bytes stand side by side inside such a symbol.
  bool joins_symbol(char left, char right) const { return inside_symbols_.contains(left, right); }

 private:
  struct Symbol;
  class BpeRun;

  void add_piece(const SentenceModel::Piece& piece, std::int32_t id);
  void check_bytes() const;
  void unigram(std::string_view text, std::vector<std::int32_t>& tokens) const;
  /// One piece; -1: none, and the last one was none either.
  void emit(std::string_view piece, std::int32_t id, bool after_unknown, std::vector<std::int32_t>& tokens) const;
  std::size_t frozen(std::string_view text) const;

  bool is_bpe_;
  bool byte_fallback_;
  bool has_user_symbols_ = false;
  std::int32_t unknown_ = -1;
  PieceTree pieces_;        // those that text can have
  PieceTree user_symbols_;  // as normalized text has them
  PieceTree raw_symbols_;   // as text has them
  std::vector<double> scores_;
  std::vector<bool> unused_;
  std::array<std::int32_t, 256> bytes_;
  float unknown_score_ = 0;
  BytePairs inside_;
  BytePairs inside_symbols_;
};

}  // namespace quipu
