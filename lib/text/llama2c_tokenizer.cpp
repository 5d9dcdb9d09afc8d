#include <bit>
#include <optional>

#include "base/error.h"
#include "text/sentence_model.h"
#include "text/tokenizer_blobs.h"

namespace quipu {

namespace {

constexpr std::size_t kHeadBytes = 4;   // the size of the longest piece
constexpr std::size_t kEntryBytes = 8;  // score and size of a piece
constexpr std::size_t kFirstByte = 3, kBytes = 256;

std::string with_marks(std::string_view text) {
  std::string marked;
  for (const char c : text) {
    if (c == ' ') marked += kBlankMark;
    if (c != ' ') marked += c;
  }
  return marked;
}

/// Calls piece(score, text) for each; returns what is wrong, or an empty string.
template <typename Piece>
std::string read_pieces(std::string_view bytes, Piece&& piece) {
  if (bytes.size() < kHeadBytes) return fmt::format("has {} bytes, fewer than {}", bytes.size(), kHeadBytes);
  const std::size_t longest = read_u32(bytes, 0);
  std::size_t at = kHeadBytes;
  for (std::size_t id = 0; at < bytes.size(); ++id) {
    const std::size_t left = bytes.size() - at;
    if (left < kEntryBytes) return fmt::format("piece {}: {} bytes are left, fewer than {}", id, left, kEntryBytes);
    const float score = std::bit_cast<float>(read_u32(bytes.substr(at, 4), 0));
    const std::size_t size = read_u32(bytes.substr(at + 4, 4), 0);
    if (size > left - kEntryBytes || size > longest) {
      return fmt::format("piece {}: has {} bytes, and {} are left and {} the most", id, size, left - kEntryBytes,
                         longest);
    }
    piece(score, bytes.substr(at + kEntryBytes, size));
    at += kEntryBytes + size;
  }
  return {};
}

}  // namespace

bool is_llama2c_tokenizer(std::string_view bytes) {
  constexpr std::size_t kPieces = kFirstByte + kBytes;
  std::size_t pieces = 0;
  const std::string wrong = read_pieces(bytes, [&](float, std::string_view) { ++pieces; });
  return wrong.empty() && pieces >= kPieces;
}

SentenceModel read_llama2c_tokenizer(std::string_view bytes) {
  SentenceModel model;
  model.method = SentenceModel::Method::kBpe;
  model.byte_fallback = true;
  model.remove_extra_blanks = false;
  model.end_of_document = 2;
  const std::string wrong = read_pieces(bytes, [&](float score, std::string_view text) {
    const std::size_t id = model.pieces.size();
    SentenceModel::Piece piece{with_marks(text), score, SentenceModel::Type::kNormal};
    if (id == 0) piece.type = SentenceModel::Type::kUnknown;
    if (id == 1 || id == 2) {
      piece.type = SentenceModel::Type::kControl;
      piece.text = id == 1 ? "<s>" : "</s>";
    }
    if (id >= kFirstByte && id < kFirstByte + kBytes) piece.type = SentenceModel::Type::kByte;
    model.pieces.push_back(std::move(piece));
  });
  if (!wrong.empty()) throw InputError("{}; get the file again", wrong);
  return model;
}

}  // namespace quipu
