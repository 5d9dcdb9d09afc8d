#pragma once
#include <optional>

#include "text/loan_pool.h"
#include "text/merge_segmenter.h"
#include "text/piece_tree.h"
#include "text/pre_tokenizer.h"
#include "text/token_matcher.h"
#include "text/tokenizer.h"
#include "text/unicode_form.h"
#include "text/word_cache.h"

namespace quipu {

/// What a byte-level BPE tokenizer is made of.
struct ByteBpeModel {
  /// A token that stands in text literally, before the text is cut into words. A special one counts only where special
  /// tokens are asked for; one that is `normalized` is looked for after the text was brought into the form.
  struct Added {
    std::int32_t id = 0;
    bool special = false;
    bool normalized = false;
    bool merged = false;  ///< merges make it, too
    bool trims = false;   ///< it would take blanks beside it, or count only as a word: not read here

    bool operator==(const Added&) const = default;
  };

  std::vector<std::string> pieces;  ///< by id, as bytes; empty: there is no such token
  std::vector<MergeSegmenter::Merge> merges;
  std::vector<Added> added;
  std::vector<std::string> patterns;  ///< that cut text into words, see PreTokenizer
  UnicodeForm form = UnicodeForm::kNone;
  bool whole_words = false;   ///< a word that is a piece is taken as that, whatever the merges say
  bool prefix_space = false;  ///< a document that begins with no blank gets one
  std::optional<std::int32_t> end_of_document;
};

/// `byte-bpe`: the tokenizers of GPT-2, GPT-NeoX and their like. Bytes that are no UTF-8 are a token each, and end
/// words and normalization on both sides. Some vocabularies (GPT-NeoX's) have no token for the 13 bytes that UTF-8
/// never has (C0, C1, F5 to FF): these become U+FFFD.
class ByteBpeTokenizer final : public Tokenizer {
 public:
  /// InputError where an id is out of range or used twice, a byte of UTF-8 has no piece, a merge does not join two
  /// pieces to a third, or a pattern cannot be read.
  explicit ByteBpeTokenizer(ByteBpeModel model);
  static std::unique_ptr<ByteBpeTokenizer> from_data(const TokenizerData& data);

  std::string_view kind() const override { return "byte-bpe"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(model_.pieces.size()); }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  void append_text(std::int32_t previous, std::int32_t id, std::string& text) const override;
  std::optional<std::int32_t> end_of_document() const override { return model_.end_of_document; }
  void use_special_tokens() override;
  TokenizerData serialize() const override;

  /// As it was given.
  ByteBpeModel model() const;

 private:
  class Run;
  struct Scratch {
    WordCache words;
    PatternScratch patterns;
  };

  TokenMatcher matcher(bool normalized, bool special) const;
  void segment(std::string_view word, std::vector<std::int32_t>& tokens) const;

  ByteBpeModel model_;
  std::array<std::int32_t, 256> bytes_;
  MergeSegmenter segmenter_;
  PreTokenizer pre_tokenizer_;
  TokenMatcher raw_tokens_;
  TokenMatcher normalized_tokens_;
  PieceTree words_;  // for whole_words
  mutable LoanPool<Scratch> scratches_;
};

}  // namespace quipu
