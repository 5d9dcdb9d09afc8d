#include "text/world_tokenizer.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "text/escape.h"
#include "text/tokenizer_blobs.h"

namespace quipu {

WorldTokenizer::WorldTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  if (pieces_.empty() || !pieces_[0].empty()) {
    throw InputError("tokenizer: world: token 0 is a piece, but ends documents; repair the file");
  }
  std::size_t bytes = 0;
  for (const std::string& piece : pieces_) bytes += piece.size();
  tree_ = PieceTree(bytes);
  std::array<bool, 256> single{};
  for (std::size_t id = 0; id < pieces_.size(); ++id) {
    const std::string& piece = pieces_[id];
    if (piece.empty()) continue;
    if (!tree_.insert(piece, static_cast<std::int32_t>(id))) {
      throw InputError("tokenizer: world: tokens {} and {} are both '{}'; give each once", tree_.find(piece), id,
                       escape_text(piece));
    }
    if (piece.size() == 1) single[static_cast<unsigned char>(piece[0])] = true;
    inside_.insert_all(piece);
  }
  for (std::size_t byte = 0; byte < single.size(); ++byte) {
    if (!single[byte]) {
      throw InputError("tokenizer: world: has no token for byte {} of the 256; get the file again", byte);
    }
  }
}

std::unique_ptr<WorldTokenizer> WorldTokenizer::from_data(const TokenizerData& data) {
  return std::make_unique<WorldTokenizer>(unpack_strings(data, "pieces", "lengths"));
}

TokenizerData WorldTokenizer::serialize() const {
  TokenizerData data{std::string(kind()), {}};
  pack_strings(pieces_, "pieces", "lengths", data);
  return data;
}

std::size_t WorldTokenizer::encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t length = 0;
    std::int32_t id = 0;
    const bool undecided = tree_.longest_path(text.substr(at), [&](std::size_t found, std::int32_t piece) {
      length = found;
      id = piece;
    });
    if (undecided && !part.ends) break;
    tokens.push_back(id);
    at += length;
  }
  return at;
}

std::size_t WorldTokenizer::cut_after(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!inside_.contains(text[at - 1], text[at])) return at;
  }
  return text.size();
}

std::string_view WorldTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return pieces_[static_cast<std::size_t>(id)];
}

}  // namespace quipu
