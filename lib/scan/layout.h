#pragma once
#include <vector>

#include "base/real.h"

namespace quipu {

/// A stretch of one lane that belongs to one document: tokens [begin, end). `fresh` where a document starts at
/// `begin`, so that nothing from before may be seen.
struct Span {
  Index begin;
  Index end;
  bool fresh;
};

/// Rows [begin, end) of a lane.
struct Stretch {
  Index begin;
  Index end;
};

/// What stands where in a batch of B lanes of T tokens: where documents start and where a lane's padding begins. A
/// state never crosses a document start, and padding never touches it. A plain batch needs neither list.
struct Layout {
  Index batch = 0;
  Index length = 0;
  /// Tokens of each lane before its padding; empty: all lanes are full.
  std::vector<Index> lengths;
  /// Of each lane, ascending positions at which a new document starts; empty: none does, all lanes go on.
  std::vector<std::vector<Index>> starts;
  /// Of each lane, ascending stretches whose rows see one another whole, the later ones too; empty: every row sees
  /// itself and earlier ones. Only mixers that say so heed them.
  std::vector<std::vector<Stretch>> blocks{};

  static Layout plain(Index batch, Index length) { return {batch, length, {}, {}}; }
  /// All lanes start anew at their first token.
  static Layout fresh(Index batch, Index length) {
    return {batch, length, {}, std::vector<std::vector<Index>>(static_cast<std::size_t>(batch), {0})};
  }

  Index lane_length(Index lane) const { return lengths.empty() ? length : lengths[static_cast<std::size_t>(lane)]; }
  /// The block that row t belongs to, or null.
  const Stretch* block_of(Index lane, Index t) const;
  /// One past the last row that row t may see.
  Index reach(Index lane, Index t) const {
    const Stretch* block = block_of(lane, t);
    return block ? block->end : t + 1;
  }
  /// The lane's documents, in order; none for a lane of padding alone.
  std::vector<Span> spans(Index lane) const;
  /// The same, cut into pieces of at most `chunk` tokens, counted from each span's begin.
  std::vector<Span> chunks(Index lane, Index chunk) const;
};

}  // namespace quipu
