#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// Cuts a word into pieces of a vocabulary whose first 256 pieces are the single bytes. Const and safe to use from
/// several threads at once.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  /// Appends the pieces of a word of 1 to kMaxWordBytes bytes.
  virtual void segment(std::string_view word, std::vector<std::int32_t>& tokens) const = 0;
};

/// Byte-pair encoding: starting from bytes, joins the two neighbours that make the piece of the lowest id, the leftmost
/// ones first, until no two neighbours make a piece. (Sennrich, Haddow, Birch 2016; ids are in the order of training.)
std::unique_ptr<Segmenter> make_bpe_segmenter(std::span<const std::string> pieces);

/// Unigram language model: the pieces with the largest sum of scores (log probabilities), found by Viterbi's
/// algorithm; of equal ones that whose last piece is longer. (Kudo 2018.)
std::unique_ptr<Segmenter> make_unigram_segmenter(std::span<const std::string> pieces, std::span<const float> scores);

}  // namespace quipu
