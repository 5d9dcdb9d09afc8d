#include "text/sentence_segmenter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_set>

#include "base/error.h"
#include "text/escape.h"
#include "text/utf8.h"

namespace quipu {

namespace {

using Type = SentenceModel::Type;

constexpr float kUnknownPenalty = 10;

std::string without_marks(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const bool mark = text.starts_with(kBlankMark);
    plain += mark ? ' ' : text[0];
    text.remove_prefix(mark ? kBlankMark.size() : 1);
  }
  return plain;
}

std::size_t character_size(std::string_view text) { return std::max<std::size_t>(1, utf8_size(text)); }

bool is_written(Type type) { return type == Type::kNormal || type == Type::kUserDefined || type == Type::kUnused; }

/// The byte of a piece such as <0x0A>; -1 where it is none.
int byte_of(std::string_view text) {
  int byte = -1;
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const auto parsed = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + 5 ? byte : -1;
}

void check_pieces(const SentenceModel& model) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentenceModel::Piece& piece = model.pieces[id];
    if (piece.text.empty()) throw InputError("piece {}: is empty; get the file again", id);
    if (!std::isfinite(piece.score))
      throw InputError("piece {}: has the score {}; get the file again", id, piece.score);
    if (!seen.insert(piece.text).second) {
      throw InputError("piece {}: '{}' is there twice; get the file again", id, escape_text(piece.text));
    }
    if (piece.type == Type::kUnused && model.method == SentenceModel::Method::kBpe) {
      throw InputError("piece {}: is an unused one of BPE, which is not read here; choose another tokenizer", id);
    }
  }
  const auto unknown = std::ranges::count(model.pieces, Type::kUnknown, &SentenceModel::Piece::type);
  if (unknown != 1)
    throw InputError("has {} unknown pieces of {} instead of 1; get the file again", unknown, model.pieces.size());
}

}  // namespace

SentenceSegmenter::SentenceSegmenter(const SentenceModel& model)
    : is_bpe_(model.method == SentenceModel::Method::kBpe), byte_fallback_(model.byte_fallback) {
  check_pieces(model);
  std::size_t bytes = 0, user_bytes = 0;
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  for (const SentenceModel::Piece& piece : model.pieces) {
    if (is_written(piece.type)) bytes += piece.text.size();
    if (piece.type == Type::kUserDefined) user_bytes += piece.text.size();
    if (piece.type != Type::kNormal) continue;
    least = std::min(least, piece.score);
    most = std::max(most, piece.score);
  }
  pieces_ = PieceTree(bytes);
  user_symbols_ = PieceTree(user_bytes);
  raw_symbols_ = PieceTree(user_bytes);
  bytes_.fill(-1);
  unknown_score_ = least - kUnknownPenalty;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentenceModel::Piece& piece = model.pieces[id];
    const bool bonus = piece.type == Type::kUserDefined && !is_bpe_;
    const auto length = static_cast<float>(piece.text.size());
    scores_.push_back(bonus ? static_cast<double>(length * most) - 0.1 : static_cast<double>(piece.score));
    unused_.push_back(piece.type == Type::kUnused);
    add_piece(piece, static_cast<std::int32_t>(id));
  }
  if (byte_fallback_) check_bytes();
}

void SentenceSegmenter::add_piece(const SentenceModel::Piece& piece, std::int32_t id) {
  if (piece.type == Type::kUnknown) unknown_ = id;
  if (piece.type == Type::kByte) {
    const int byte = byte_of(piece.text);
    if (byte < 0)
      throw InputError("piece {}: '{}' is no byte such as <0x0A>; get the file again", id, escape_text(piece.text));
    bytes_[static_cast<std::size_t>(byte)] = id;
  }
  if (!is_written(piece.type)) return;
  if (piece.type == Type::kUserDefined) {
    has_user_symbols_ = true;
    raw_symbols_.insert(piece.text, id);
    inside_symbols_.insert_all(piece.text);
  }
  if (piece.text.find(' ') != std::string::npos) return;  // normalized text has none
  const std::string plain = without_marks(piece.text);
  pieces_.insert(plain, id);
  inside_.insert_all(plain);
  if (piece.type == Type::kUserDefined) user_symbols_.insert(plain, id);
}

void SentenceSegmenter::check_bytes() const {
  const auto absent = std::ranges::find(bytes_, -1);
  if (absent == bytes_.end()) return;
  throw InputError("has byte_fallback, but no piece for byte {} of the 256; get the file again",
                   absent - bytes_.begin());
}

bool SentenceSegmenter::may_cut(char last, std::string_view after) const {
  if (inside_.contains(last, after[0])) return false;
  if (byte_fallback_) return true;
  // Unknown characters side by side are one token: only a known one certainly begins another.
  const std::int32_t id = pieces_.find(after.substr(0, character_size(after)));
  return id != PieceTree::kAbsent && !unused_[static_cast<std::size_t>(id)];
}

std::size_t SentenceSegmenter::user_symbol(std::string_view text, bool& undecided) const {
  std::size_t length = 0;
  undecided = raw_symbols_.longest_path(text, [&](std::size_t found, std::int32_t) { length = found; });
  return length;
}

std::size_t SentenceSegmenter::frozen(std::string_view text) const {
  std::size_t length = 0;
  user_symbols_.beginnings(text, [&](std::size_t found, std::int32_t) { length = found; });
  return length;
}

void SentenceSegmenter::emit(std::string_view piece, std::int32_t id, bool after_unknown,
                             std::vector<std::int32_t>& tokens) const {
  if (id >= 0) return tokens.push_back(id);
  if (!byte_fallback_) {
    if (!after_unknown) tokens.push_back(unknown_);
    return;
  }
  const auto put = [&](char c) { tokens.push_back(bytes_[static_cast<unsigned char>(c)]); };
  for (const char c : piece) {
    if (c != ' ') {
      put(c);
    } else {
      std::ranges::for_each(kBlankMark, put);  // a vocabulary without a piece for blanks
    }
  }
}

void SentenceSegmenter::unigram(std::string_view text, std::vector<std::int32_t>& tokens) const {
  struct Best {
    float score = 0;
    std::int32_t id = -1;
    std::size_t begin = std::string_view::npos;
  };
  std::vector<Best> best(text.size() + 1);  // of what ends there
  const auto offer = [&best](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    const double total = score + static_cast<double>(best[begin].score);
    Best& here = best[end];
    if (here.begin == std::string_view::npos || total > static_cast<double>(here.score)) {
      here = {static_cast<float>(total), id, begin};
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.substr(at));
    bool has_character = false;
    pieces_.beginnings(text.substr(at), [&](std::size_t length, std::int32_t id) {
      if (unused_[static_cast<std::size_t>(id)]) return;
      offer(at, at + length, id, scores_[static_cast<std::size_t>(id)]);
      has_character = has_character || length == size;
    });
    if (!has_character) offer(at, at + size, -1, static_cast<double>(unknown_score_));
    at += size;
  }
  std::vector<std::size_t> ends;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) ends.push_back(end);
  bool unknown = false;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Best& piece = best[*end];
    emit(text.substr(piece.begin, *end - piece.begin), piece.id, unknown, tokens);
    unknown = piece.id < 0;
  }
}

/// Characters that grow together.
struct SentenceSegmenter::Symbol {
  std::size_t begin, size;  // size 0: it is part of the one before
  std::size_t before, after;
  bool frozen;
};

class SentenceSegmenter::BpeRun {
 public:
  BpeRun(const SentenceSegmenter& owner, std::string_view text) : owner_(owner), text_(text) {}

  void run(std::vector<std::int32_t>& tokens) {
    split();
    for (std::size_t i = 1; i < symbols_.size(); ++i) offer(i - 1, i);
    while (!joins_.empty()) {
      const Join join = joins_.top();
      joins_.pop();
      apply(join);
    }
    bool unknown = false;
    for (std::size_t i = 0; i != kNone; i = symbols_[i].after) {
      const std::string_view piece = text_.substr(symbols_[i].begin, symbols_[i].size);
      const std::int32_t id = owner_.pieces_.find(piece);
      owner_.emit(piece, id, unknown, tokens);
      unknown = id < 0;
    }
  }

 private:
  static constexpr std::size_t kNone = std::string_view::npos;
  struct Join {
    double score;
    std::size_t left, right, size;
    bool operator<(const Join& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  void split() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t frozen = owner_.has_user_symbols_ ? owner_.frozen(text_.substr(at)) : 0;
      const std::size_t size = frozen > 0 ? frozen : character_size(text_.substr(at));
      const std::size_t index = symbols_.size();
      symbols_.push_back({at, size, index == 0 ? kNone : index - 1, index + 1, frozen > 0});
      at += size;
    }
    symbols_.back().after = kNone;
  }

  void offer(std::size_t left, std::size_t right) {
    if (left == kNone || right == kNone || symbols_[left].frozen || symbols_[right].frozen) return;
    const std::size_t size = symbols_[left].size + symbols_[right].size;
    const std::int32_t id = owner_.pieces_.find(text_.substr(symbols_[left].begin, size));
    if (id >= 0) joins_.push({owner_.scores_[static_cast<std::size_t>(id)], left, right, size});
  }

  void apply(const Join& join) {
    Symbol& left = symbols_[join.left];
    Symbol& right = symbols_[join.right];
    if (left.size == 0 || right.size == 0 || left.size + right.size != join.size) return;
    left.size = join.size;
    left.after = right.after;
    if (right.after != kNone) symbols_[right.after].before = join.left;
    right.size = 0;
    offer(left.before, join.left);
    offer(join.left, left.after);
  }

  const SentenceSegmenter& owner_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Join> joins_;
};

void SentenceSegmenter::segment(std::string_view text, std::vector<std::int32_t>& tokens) const {
  if (text.empty()) return;
  if (is_bpe_) return BpeRun(*this, text).run(tokens);
  unigram(text, tokens);
}

}  // namespace quipu
