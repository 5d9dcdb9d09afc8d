#include "train/permutation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace quipu;

TEST_CASE("permutation: every place is taken once, for every size") {
  for (const Index n : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097}) {
    INFO("n = ", n);
    const Permutation order(n, 7, 3);
    std::vector<int> seen(static_cast<std::size_t>(n), 0);
    for (Index i = 0; i < n; ++i) {
      REQUIRE(order(i) >= 0);
      REQUIRE(order(i) < n);
      ++seen[static_cast<std::size_t>(order(i))];
    }
    for (const int times : seen) REQUIRE(times == 1);
  }
}

TEST_CASE("permutation: rounds and seeds give other orders, the same ones the same") {
  const Index n = 1000;
  const Permutation a(n, 1, 0), again(n, 1, 0), round(n, 1, 1), seed(n, 2, 0);
  int same_round = 0, same_seed = 0, fixed = 0;
  for (Index i = 0; i < n; ++i) {
    CHECK(a(i) == again(i));
    same_round += a(i) == round(i), same_seed += a(i) == seed(i), fixed += a(i) == i;
  }
  // Each is about Poisson with mean 1.
  CHECK(same_round < 8);
  CHECK(same_seed < 8);
  CHECK(fixed < 8);
}

TEST_CASE("permutation: places go everywhere alike, over rounds") {
  // Place 0 of 5 over many rounds: each value a fifth of the time, to 5 standard deviations.
  constexpr int kRounds = 5000;
  std::vector<int> counts(5, 0), follows(5, 0);
  for (int r = 0; r < kRounds; ++r) {
    const Permutation order(5, 11, static_cast<std::uint64_t>(r));
    ++counts[static_cast<std::size_t>(order(0))];
    ++follows[static_cast<std::size_t>((order(1) - order(0) + 5) % 5)];
  }
  const double deviation = std::sqrt(kRounds * 0.2 * 0.8);
  for (const int count : counts) CHECK(std::abs(count - kRounds * 0.2) < 5 * deviation);
  CHECK(follows[0] == 0);
  for (std::size_t i = 1; i < 5; ++i) CHECK(std::abs(follows[i] - kRounds * 0.25) < 5 * deviation);
}

TEST_CASE("permutation: sizes beyond 32 bits stay in range") {
  const Index n = (Index{1} << 40) + 3;
  const Permutation order(n, 5, 0);
  for (Index i = 0; i < 100; ++i) {
    CHECK(order(i) >= 0);
    CHECK(order(i) < n);
  }
}
