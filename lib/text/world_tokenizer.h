#pragma once
#include "text/byte_pairs.h"
#include "text/piece_tree.h"
#include "text/tokenizer.h"

namespace quipu {

/// `world`: the tokenizer of the RWKV World models. At each place of the text the longest piece that stands there is
/// taken. Id 0 has no text and ends documents.
class WorldTokenizer final : public Tokenizer {
 public:
  /// `pieces`: by id; empty: no such token, as with id 0. InputError where one is there twice, or a byte has none.
  explicit WorldTokenizer(std::vector<std::string> pieces);
  static std::unique_ptr<WorldTokenizer> from_data(const TokenizerData& data);

  std::string_view kind() const override { return "world"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override;
  std::size_t cut_after(std::string_view text, std::size_t from) const override;
  std::string_view token_bytes(std::int32_t id) const override;
  std::optional<std::int32_t> end_of_document() const override { return 0; }
  TokenizerData serialize() const override;

 private:
  std::vector<std::string> pieces_;
  PieceTree tree_;
  BytePairs inside_;  // neighbours inside a piece
};

/// The pieces of a `rwkv_vocab` text file, by id: a line has the id, the piece as a Python string or bytes literal, and
/// its size in bytes. InputError, with the line, where it is not so.
std::vector<std::string> read_world_vocabulary(std::string_view text);

}  // namespace quipu
