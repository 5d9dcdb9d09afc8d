#pragma once
#include <cstdint>

#include "base/real.h"

namespace quipu {

/// A random order of 0 .. n-1 that is computed, not stored: a pure function of (n, seed, round). A Feistel network over
/// the smallest power of four that holds n, walked along its cycles until it falls below n: at most four steps on
/// average, and a bijection by construction.
class Permutation {
 public:
  /// n >= 1.
  Permutation(Index n, std::uint64_t seed, std::uint64_t round);

  Index size() const { return n_; }
  /// Where place i (0 <= i < n) goes.
  Index operator()(Index i) const;

 private:
  Index n_;
  std::uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace quipu
