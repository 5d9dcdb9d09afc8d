#include "train/permutation.h"

#include "base/rng.h"

namespace quipu {
namespace {

constexpr int kRounds = 6;

}  // namespace

Permutation::Permutation(Index n, std::uint64_t seed, std::uint64_t round)
    : n_(n), key_(Rng(seed, round, rng_site("permutation")).bits(0)) {
  while ((std::uint64_t{1} << (2 * half_bits_)) < static_cast<std::uint64_t>(n)) ++half_bits_;
}

Index Permutation::operator()(Index i) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t r = 0; r < kRounds; ++r) {
      const std::uint64_t next = left ^ (mix64(key_ ^ mix64(right * kRounds + r)) & mask);
      left = right, right = next;
    }
    x = left << half_bits_ | right;
  } while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<Index>(x);
}

}  // namespace quipu
