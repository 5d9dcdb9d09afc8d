#pragma once
#include "text/charsmap.h"
#include "text/loan_pool.h"
#include "text/sentence_segmenter.h"
#include "text/token_matcher.h"
#include "text/tokenizer.h"
#include "text/word_cache.h"

namespace quipu {

/// `sentencepiece`: the tokens that SentencePiece gives, for its models of the methods unigram and BPE, and for
/// llama2.c's tokenizers. No token begins or ends a text.
///
/// SentencePiece normalizes a text, puts a blank before it (where the model says so) and looks for pieces in the whole.
/// Here the normalized text is first cut wherever no piece of the vocabulary reaches over the place, which changes
/// nothing but the rounding of a long text's score. Bytes that are no UTF-8 are tokens of their own where the model has
/// bytes, and U+FFFD elsewhere. With special tokens, what follows one is no beginning of a document.
class SentenceTokenizer final : public Tokenizer {
 public:
  /// InputError as SentenceSegmenter and Charsmap.
  explicit SentenceTokenizer(SentenceModel model);
  static std::unique_ptr<SentenceTokenizer> from_data(const TokenizerData& data);

  std::string_view kind() const override { return "sentencepiece"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(model_.pieces.size()); }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  void append_text(std::int32_t previous, std::int32_t id, std::string& text) const override;
  std::optional<std::int32_t> end_of_document() const override;
  void use_special_tokens() override;
  TokenizerData serialize() const override;

  const SentenceModel& model() const { return model_; }

 private:
  struct Scratch {
    WordCache words;
    std::string normalized;
  };
  /// What stands at the beginning of a text, normalized.
  struct Chunk {
    std::size_t length = 0;
    std::string_view text;
    bool undecided = false;
  };

  bool is_control(std::int32_t id) const;
  Chunk chunk(std::string_view text) const;
  std::size_t encode_stretch(std::string_view text, TextPart part, Scratch& scratch,
                             std::vector<std::int32_t>& tokens) const;
  void encode_normalized(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& tokens) const;

  SentenceModel model_;
  Charsmap charsmap_;
  SentenceSegmenter segmenter_;
  TokenMatcher special_;            // where special tokens are used
  std::vector<std::string> texts_;  // of the tokens
  mutable LoanPool<Scratch> scratches_;
};

}  // namespace quipu
