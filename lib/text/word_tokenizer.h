#pragma once
#include <unordered_map>

#include "text/tokenizer.h"
#include "text/word_counts.h"

namespace quipu {

/// `words[:N]`: words between blanks, as WikiText counts them. Id 0 is `<unk>` (every word that is not in the table,
/// and the word `<unk>` itself), id 1 is `<eos>` (each newline), then the words of the training text, most frequent
/// first, equally frequent ones in the order of their bytes. N is the size of the whole vocabulary, those two included.
///
/// Not lossless: decoding puts one blank between words and none at the start of a line. A last line without newline
/// has no `<eos>`. The word `<eos>` in a text is an ordinary word.
class WordTokenizer final : public Tokenizer {
 public:
  static constexpr std::int32_t kUnknown = 0;
  static constexpr std::int32_t kEndOfLine = 1;

  /// `words`: those of ids 2 and up; distinct, not empty, without blanks, none is `<unk>`.
  explicit WordTokenizer(std::vector<std::string> words);
  static std::unique_ptr<WordTokenizer> from_data(const TokenizerData& data);

  std::string_view kind() const override { return "words"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(words_.size()); }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  void append_text(std::int32_t previous, std::int32_t id, std::string& text) const override;
  TokenizerData serialize() const override;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
};

}  // namespace quipu
