#include "tensor/decay_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

using namespace quipu;

TEST_CASE("log decays add up in double, and tell when one has gone too low") {
  const Rng rng(3, 0, 0);
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{37}}) {
    std::vector<double> sums(n, 0), exact(n, 0);
    std::vector<Real> rounded(n), g(n);
    for (std::uint64_t t = 0; t < 64; ++t) {
      double lowest = 0;
      for (std::size_t c = 0; c < n; ++c) {
        g[c] = -static_cast<Real>(0.2 * rng.uniform(t * 100 + c));
        exact[c] += static_cast<double>(g[c]);
        lowest = std::min(lowest, exact[c]);
      }
      CHECK(kernels::add_to_sums(sums.data(), rounded.data(), g.data(), -3, static_cast<Index>(n)) == (lowest > -3));
    }
    for (std::size_t c = 0; c < n; ++c) {
      CHECK(sums[c] == exact[c]);
      CHECK(rounded[c] == static_cast<Real>(exact[c]));
    }
  }
}

TEST_CASE("products are added to sums and taken off") {
  std::vector<double> sums(19, 5);
  std::vector<Real> a(19, 3), b(19), rounded(19);
  for (std::size_t c = 0; c < b.size(); ++c) b[c] = static_cast<Real>(c);
  kernels::subtract_products(sums.data(), a.data(), b.data(), 19);
  for (std::size_t c = 0; c < b.size(); ++c) CHECK(sums[c] == 5.0 - 3.0 * static_cast<double>(c));
  kernels::add_products(sums.data(), a.data(), a.data(), 19);
  kernels::round_sums(rounded.data(), sums.data(), 19);
  for (std::size_t c = 0; c < b.size(); ++c)
    CHECK(rounded[c] == static_cast<Real>(14.0 - 3.0 * static_cast<double>(c)));
}
