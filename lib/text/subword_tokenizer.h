#pragma once
#include "text/loan_pool.h"
#include "text/segmenter.h"
#include "text/tokenizer.h"
#include "text/word_cache.h"

namespace quipu {

/// `bpe:N` and `unigram:N`: pieces of words (see word_split.h), learned from text. Ids 0 .. 255 are the single bytes in
/// order, so that every byte string has tokens and comes back exactly; there is no unknown token, and none that text
/// could not contain. For `bpe` the order of the ids from 256 is that of the merges.
class SubwordTokenizer final : public Tokenizer {
 public:
  enum class Method { kBpe, kUnigram };

  /// `pieces`: distinct byte strings of 1 to kMaxWordBytes bytes, the first 256 as above. `scores`: for kUnigram one
  /// finite log probability a piece, for kBpe empty. InputError where they are not so.
  SubwordTokenizer(Method method, std::vector<std::string> pieces, std::vector<float> scores);
  static std::unique_ptr<SubwordTokenizer> from_data(const TokenizerData& data);

  std::string_view kind() const override { return method_ == Method::kBpe ? "bpe" : "unigram"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  TokenizerData serialize() const override;

 private:
  Method method_;
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::unique_ptr<Segmenter> segmenter_;
  mutable LoanPool<WordCache> caches_;
};

}  // namespace quipu
