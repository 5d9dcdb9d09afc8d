#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "base/real.h"

namespace quipu {

/// Loss against the length of the context, in bins that double: contexts of 1, 2-3, 4-7, 8-15, .. tokens.
class PositionBins {
 public:
  struct Bin {
    Index from = 1;  ///< tokens of context, first and last
    Index to = 1;
    Index tokens = 0;
    double nll_sum_nats = 0;
  };

  /// context: 1 or more.
  void add(Index context, double nll_nats) {
    const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(context))) - 1;
    while (bins_.size() <= bin) {
      const Index from = Index{1} << bins_.size();
      bins_.push_back({from, 2 * from - 1, 0, 0});
    }
    ++bins_[bin].tokens;
    bins_[bin].nll_sum_nats += nll_nats;
  }

  /// From the shortest context to the longest; a bin may be empty.
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  std::vector<Bin> bins_;
};

}  // namespace quipu
