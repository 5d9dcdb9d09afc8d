#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_data.h"

namespace quipu {

/// Which ends of its document a stretch of text has.
struct TextPart {
  bool begins = true;
  bool ends = true;
};

/// Text to token ids 0 .. vocab_size()-1 and back. Const and safe to use from several threads at once.
///
/// Text is bytes, in whatever encoding. No string in it is special, unless use_special_tokens() says so. `bytes`,
/// `bpe`, `unigram` and `world` are lossless: decode(encode(x)) == x for every x. `byte-bpe` is where it brings text
/// into no normalization form, and else for text that is in that form; `sentencepiece` as far as its model's
/// normalization is, and the model has tokens for all bytes. Documents are kept apart by offsets beside the tokens,
/// never by a token that text could contain; a kind that has a token to end documents names it in end_of_document().
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// `bytes`, `words`, `bpe`, `unigram`, and of those made elsewhere `byte-bpe`, `world` or `sentencepiece`.
  virtual std::string_view kind() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  /// Appends the tokens of the longest beginning of `text` whose tokens do not depend on what may follow, and returns
  /// its length in bytes; all of `text` where it ends its document. What is left is at most a few hundred bytes for the
  /// kinds learned here; for `words`, it is the last, unfinished word; for those made elsewhere, the longest stretch at
  /// the end that cannot be proved to fall into parts (a word in the tokenizer's own sense, or a run of blanks).
  /// Feeding a document in any blocks, each with what was left before it, and the first as its beginning until
  /// something of it is taken, gives the tokens of the whole document.
  virtual std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const = 0;

  /// The first position >= `from` (from >= 1) where text may be cut and the two sides encoded apart with the same
  /// result as together: the left one as if its document ended there, the right one as not the beginning. text.size()
  /// where there is none.
  virtual std::size_t cut_after(std::string_view text, std::size_t from) const = 0;

  /// The bytes of a token by itself. InputError where `id` is outside the vocabulary.
  virtual std::string_view token_bytes(std::int32_t id) const = 0;

  /// Appends what token `id` adds to a text whose last token was `previous` (-1: none): its bytes, and for `words` the
  /// blank between words.
  virtual void append_text(std::int32_t previous, std::int32_t id, std::string& text) const;

  /// The token that ends a document, where the kind has one.
  virtual std::optional<std::int32_t> end_of_document() const { return std::nullopt; }

  /// From now on the strings that stand for the kind's special tokens are read as these where a text has them. It is no
  /// part of serialize(). UsageError where the kind has none.
  virtual void use_special_tokens();

  virtual TokenizerData serialize() const = 0;

  /// Appends the tokens of a whole text.
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  /// serialize().digest(): equal for tokenizers that encode and decode alike.
  std::uint64_t digest() const { return serialize().digest(); }

 protected:
  /// Throws InputError with both numbers unless 0 <= id < vocab_size().
  void require_in_vocabulary(std::int32_t id) const;
};

/// Rebuilds a tokenizer. InputError where the kind is unknown or the data do not make one.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerData& data);

/// `bytes`, `bpe:4096`, `words:33278`: the kind with the size of the vocabulary.
std::string describe(const Tokenizer& tokenizer);

}  // namespace quipu
