#pragma once
#include <algorithm>

#include "base/real.h"

namespace quipu {

/// Calls fn(begin, end) for the blocks [0, block), [block, 2 block), ... of 0 .. n-1, in parallel. The blocks depend on
/// n and `block` alone, so that a result made block by block is the same for any number of threads. A single block runs
/// on the calling thread, as does everything inside a parallel region. fn must not throw.
template <typename F>
void for_blocks(Index n, Index block, F&& fn) {
  const Index blocks = (n + block - 1) / block;
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (Index i = 0; i < blocks; ++i) fn(i * block, std::min(n, (i + 1) * block));
}

/// The block of an elementwise loop: large enough to be worth a thread, small enough to stay in the cache.
inline constexpr Index kElementBlock = 16384;

}  // namespace quipu
