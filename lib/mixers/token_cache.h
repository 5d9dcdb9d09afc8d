#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "grad/ops_shape.h"
#include "scan/positions.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What mixers of fixed length keep: all tokens of a document, its token i in row i of a cache [B,N,..], zeros behind.
/// One of these serves all caches of a mixer through one batch.
class TokenCache {
 public:
  /// `tokens`: of each lane, how many of its document are in the cache already.
  TokenCache(const Layout& layout, std::vector<std::int64_t> tokens) : layout_(layout), before_(std::move(tokens)) {
    past_ = *std::max_element(before_.begin(), before_.end());
  }

  /// Of each lane, how many tokens its document has before the batch, as rows flush with the new ones.
  std::vector<Index> past() const { return {before_.begin(), before_.end()}; }
  /// Of each lane, how many its last document has after the batch.
  std::vector<std::int64_t> after() const {
    std::vector<std::int64_t> tokens = before_;
    advance_positions(layout_, tokens);
    return tokens;
  }

  /// The cache [B,N,..], then the batch's rows [B,T,..]: [B,P+T,..], P the most that a lane has.
  Var join(Tape& tape, const Var& cache, const Var& fresh) const {
    if (past_ == 0) return fresh;
    std::vector<Index> picks;
    for (const std::int64_t tokens : before_) {
      for (Index token = tokens - past_; token < tokens; ++token) picks.push_back(std::max<Index>(token, -1));
      for (Index t = 0; t < layout_.length; ++t) picks.push_back(cache.extent(1) + t);
    }
    return pick_rows(tape, cache, fresh, picks, past_ + layout_.length);
  }

  /// The cache of N rows after the batch, from what `join` gave.
  Var keep(Tape& tape, const Var& joined, Index rows) const {
    std::vector<Index> picks(static_cast<std::size_t>(layout_.batch * rows), -1);
    const std::vector<std::int64_t> tokens = after();
    for (Index b = 0; b < layout_.batch; ++b) {
      const auto lane = static_cast<std::size_t>(b);
      const Index first = past_ + layout_.lane_length(b) - tokens[lane];
      for (Index i = 0; i < tokens[lane]; ++i) picks[static_cast<std::size_t>(b * rows + i)] = first + i;
    }
    return pick_rows(tape, joined, {}, picks, rows);
  }

 private:
  const Layout& layout_;
  std::vector<std::int64_t> before_;
  Index past_ = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
