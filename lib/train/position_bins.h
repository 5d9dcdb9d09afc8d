#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/real.h"

namespace quipu {

/// Loss against the length of the context, in bins that double: contexts of 1, 2-3, 4-7, 8-15, .. tokens.
///
/// Losses of neighbours are alike, so that a bin's standard error is taken over stretches, each 256 tokens of the text
/// wherever its documents end, and not over tokens: a stretch is one sample, which counts with the tokens of the bin
/// that lie in it.
class PositionBins {
 public:
  static constexpr Index kStretch = 256;
  /// Fewer stretches have no standard error.
  static constexpr Index kLeastStretches = 4;

  class Bin {
   public:
    Index from = 1;  ///< tokens of context, first and last
    Index to = 1;
    Index tokens = 0;
    double nll_sum_nats = 0;

    /// NaN where the bin is empty.
    double nats_per_token() const { return nll_sum_nats / static_cast<double>(tokens); }
    double mean_context() const { return context_sum_ / static_cast<double>(tokens); }
    /// Of `nats_per_token`: that of a ratio of two sums over stretches. NaN where there are too few.
    double standard_error() const {
      const double count = static_cast<double>(stretches_ + 1), mean = nats_per_token();
      if (tokens == 0 || stretches_ + 1 < kLeastStretches) return std::numeric_limits<double>::quiet_NaN();
      const double n = static_cast<double>(open_tokens_);
      const double nn = nn_ + n * n, sn = sn_ + open_sum_ * n, ss = ss_ + open_sum_ * open_sum_;
      const double residuals = ss - 2 * mean * sn + mean * mean * nn;
      return std::sqrt(std::max(0.0, residuals) * count / (count - 1)) / static_cast<double>(tokens);
    }

   private:
    friend class PositionBins;
    void add(Index context, Index stretch, double nll_nats) {
      if (tokens > 0 && stretch != stretch_) close();
      stretch_ = stretch;
      ++tokens, ++open_tokens_;
      nll_sum_nats += nll_nats, open_sum_ += nll_nats;
      context_sum_ += static_cast<double>(context);
    }
    void close() {
      const double n = static_cast<double>(open_tokens_);
      nn_ += n * n, sn_ += open_sum_ * n, ss_ += open_sum_ * open_sum_;
      ++stretches_;
      open_tokens_ = 0, open_sum_ = 0;
    }

    double context_sum_ = 0;
    Index stretch_ = 0;  // the open one: its number, its tokens of this bin and their losses
    Index open_tokens_ = 0;
    double open_sum_ = 0;
    Index stretches_ = 0;  // closed ones; over these, with n tokens and the sum s of losses each: n n, s n, s s
    double nn_ = 0, sn_ = 0, ss_ = 0;
  };

  /// context: 1 or more.  position: of the token in the text, never falling from call to call.
  void add(Index context, Index position, double nll_nats) {
    const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(context))) - 1;
    while (bins_.size() <= bin) {
      bins_.emplace_back();
      bins_.back().from = Index{1} << (bins_.size() - 1);
      bins_.back().to = 2 * bins_.back().from - 1;
    }
    bins_[bin].add(context, position / kStretch, nll_nats);
  }

  /// From the shortest context to the longest; a bin may be empty.
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  std::vector<Bin> bins_;
};

}  // namespace quipu
