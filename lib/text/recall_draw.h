#pragma once
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/real.h"
#include "base/rng.h"

namespace quipu {

/// The random numbers of one example, taken one after another: what they are depends on the seed, the site and the
/// example's index alone.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t index, std::uint64_t site) : rng_(seed, index, site) {}

  /// Uniform in 0 .. n-1 (n >= 1).
  Index below(Index n) { return static_cast<Index>(rng_.below(next_++, static_cast<std::uint64_t>(n))); }
  /// Uniform in (0, 1].
  double uniform() { return 1.0 - rng_.uniform(next_++); }

  /// Fills `out` with first + different numbers of 0 .. n-1, in random order (out.size() <= n).
  void distinct(Index n, Index first, std::span<std::int32_t> out) {
    constexpr Index kDense = 1 << 15;
    if (n <= kDense || n < 4 * static_cast<Index>(out.size())) {
      std::vector<std::int32_t> all(static_cast<std::size_t>(n));
      std::iota(all.begin(), all.end(), static_cast<std::int32_t>(first));
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::swap(all[i], all[i + static_cast<std::size_t>(below(n - static_cast<Index>(i)))]);
        out[i] = all[i];
      }
      return;
    }
    std::unordered_set<Index> seen;
    for (std::int32_t& value : out) {
      Index drawn = below(n);
      while (!seen.insert(drawn).second) drawn = below(n);
      value = static_cast<std::int32_t>(first + drawn);
    }
  }

 private:
  Rng rng_;
  std::uint64_t next_ = 0;
};

}  // namespace quipu
