#include "text/subword_tokenizer.h"

#include <bit>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "text/tokenizer_blobs.h"
#include "text/word_split.h"

namespace quipu {

namespace {

constexpr std::size_t kBytes = 256;

void check(const std::vector<std::string>& pieces, const std::vector<float>& scores, bool scored) {
  if (pieces.size() < kBytes) {
    throw InputError("tokenizer: has {} pieces, fewer than the {} bytes; make it again", pieces.size(), kBytes);
  }
  if (scores.size() != (scored ? pieces.size() : 0)) {
    throw InputError("tokenizer: has {} scores for {} pieces; make it again", scores.size(), pieces.size());
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const std::string& piece = pieces[id];
    if (piece.empty() || piece.size() > kMaxWordBytes) {
      throw InputError("tokenizer: piece {} has {} bytes instead of 1 to {}; make it again", id, piece.size(),
                       kMaxWordBytes);
    }
    const bool misplaced = id < kBytes && piece != std::string(1, static_cast<char>(id));
    if (misplaced || !seen.insert(piece).second) {
      throw InputError("tokenizer: piece {} is {}; make it again", id, misplaced ? "not that byte" : "there twice");
    }
    if (scored && !std::isfinite(scores[id])) {
      throw InputError("tokenizer: the score of piece {} is {}; make it again", id, scores[id]);
    }
  }
}

}  // namespace

SubwordTokenizer::SubwordTokenizer(Method method, std::vector<std::string> pieces, std::vector<float> scores)
    : method_(method), pieces_(std::move(pieces)), scores_(std::move(scores)) {
  check(pieces_, scores_, method_ == Method::kUnigram);
  segmenter_ = method_ == Method::kBpe ? make_bpe_segmenter(pieces_) : make_unigram_segmenter(pieces_, scores_);
}

std::unique_ptr<SubwordTokenizer> SubwordTokenizer::from_data(const TokenizerData& data) {
  const Method method = data.kind == "bpe" ? Method::kBpe : Method::kUnigram;
  std::vector<float> scores;
  if (method == Method::kUnigram) {
    const std::string_view bytes = find_blob(data, "scores");
    for (std::size_t id = 0; id < bytes.size() / 4; ++id) scores.push_back(std::bit_cast<float>(read_u32(bytes, id)));
  }
  return std::make_unique<SubwordTokenizer>(method, unpack_strings(data, "pieces", "lengths"), std::move(scores));
}

TokenizerData SubwordTokenizer::serialize() const {
  TokenizerData data{std::string(kind()), {}};
  pack_strings(pieces_, "pieces", "lengths", data);
  if (method_ == Method::kUnigram) {
    std::string scores;
    for (const float score : scores_) append_u32(scores, std::bit_cast<std::uint32_t>(score));
    data.blobs.push_back({"scores", std::move(scores)});
  }
  return data;
}

std::size_t SubwordTokenizer::encode_some(std::string_view text, TextPart part,
                                          std::vector<std::int32_t>& tokens) const {
  const auto cache = caches_.borrow();
  const auto segment = [this](std::string_view word, std::vector<std::int32_t>& out) {
    segmenter_->segment(word, out);
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = split_word(text, at, part.ends);
    if (end == 0) break;
    (*cache).append(text.substr(at, end - at), tokens, segment);
    at = end;
  }
  return at;
}

std::size_t SubwordTokenizer::cut_after(std::string_view text, std::size_t from) const {
  return word_cut_after(text, from);
}

std::string_view SubwordTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return pieces_[static_cast<std::size_t>(id)];
}

}  // namespace quipu
