#include "text/merge_segmenter.h"

#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"

namespace quipu {

namespace {

constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();

constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

/// Two neighbours that can be joined. The first to be joined is the largest.
struct Join {
  std::int32_t rank;
  std::uint32_t left;  // position
  std::int32_t left_id, right_id;
  bool operator<(const Join& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

}  // namespace

MergeSegmenter::MergeSegmenter(const std::array<std::int32_t, 256>& bytes, std::vector<Merge> merges)
    : bytes_(bytes), merges_(std::move(merges)), ranks_(merges_.size()) {
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    const std::uint64_t key = pair_key(merges_[i].left, merges_[i].right);
    if (const std::int32_t other = ranks_.find(key); other != KeyTable::kAbsent) {
      throw InputError("merge {}: joins the same tokens, {} and {}, as merge {}; list it once", i, merges_[i].left,
                       merges_[i].right, other);
    }
    ranks_.insert(key, static_cast<std::int32_t>(i));
  }
}

std::int32_t MergeSegmenter::rank(std::int32_t left, std::int32_t right) const {
  const std::int32_t found = ranks_.find(pair_key(left, right));
  return found == KeyTable::kAbsent ? kNoRank : found;
}

void MergeSegmenter::segment(std::string_view word, std::vector<std::int32_t>& tokens) const {
  if (word.size() <= kShortBytes) return segment_short(word, tokens);
  segment_long(word, tokens);
}

void MergeSegmenter::segment_short(std::string_view word, std::vector<std::int32_t>& tokens) const {
  std::array<std::int32_t, kShortBytes> parts;
  std::array<std::int32_t, kShortBytes> ranks;  // of the merge of parts i and i+1
  std::size_t count = word.size();
  for (std::size_t i = 0; i < count; ++i) parts[i] = bytes_[static_cast<unsigned char>(word[i])];
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = rank(parts[i], parts[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) best = ranks[i] < ranks[best] ? i : best;
    if (ranks[best] == kNoRank) break;
    parts[best] = merges_[static_cast<std::size_t>(ranks[best])].joined;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) ranks[i] = ranks[i + 1];
    if (best > 0) ranks[best - 1] = rank(parts[best - 1], parts[best]);
    if (best + 1 < count) ranks[best] = rank(parts[best], parts[best + 1]);
  }
  tokens.insert(tokens.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
}

void MergeSegmenter::segment_long(std::string_view word, std::vector<std::int32_t>& tokens) const {
  constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int32_t kGone = -1;
  if (word.size() >= kEnd) throw InputError("text: has a word of {} bytes, {} is the most", word.size(), kEnd - 1);
  struct Part {
    std::int32_t id;
    std::uint32_t before, after;
  };
  const auto size = static_cast<std::uint32_t>(word.size());
  std::vector<Part> parts(size);
  std::vector<Join> joins;
  for (std::uint32_t i = 0; i < size; ++i) {
    parts[i] = {bytes_[static_cast<unsigned char>(word[i])], i == 0 ? kEnd : i - 1, i + 1 == size ? kEnd : i + 1};
  }
  const auto join_at = [&](std::uint32_t left) {
    const Part& part = parts[left];
    const std::int32_t right = parts[part.after].id;
    return Join{rank(part.id, right), left, part.id, right};
  };
  for (std::uint32_t i = 0; i + 1 < size; ++i) {
    if (const Join join = join_at(i); join.rank != kNoRank) joins.push_back(join);
  }
  std::priority_queue<Join> queue(std::less<Join>(), std::move(joins));
  while (!queue.empty()) {
    const Join join = queue.top();
    queue.pop();
    Part& left = parts[join.left];
    if (left.id != join.left_id || left.after == kEnd || parts[left.after].id != join.right_id) continue;
    Part& right = parts[left.after];
    left.id = merges_[static_cast<std::size_t>(join.rank)].joined;
    right.id = kGone;
    left.after = right.after;
    if (left.after != kEnd) parts[left.after].before = join.left;
    if (left.before != kEnd) {
      if (const Join next = join_at(left.before); next.rank != kNoRank) queue.push(next);
    }
    if (left.after != kEnd) {
      if (const Join next = join_at(join.left); next.rank != kNoRank) queue.push(next);
    }
  }
  for (std::uint32_t i = 0; i != kEnd; i = parts[i].after) tokens.push_back(parts[i].id);
}

}  // namespace quipu
