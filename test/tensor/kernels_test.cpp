#include "tensor/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace quipu {
namespace {

constexpr Index kLengths[] = {0, 1, 7, 8, 9, 63, 64, 65, 1000};
constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

std::vector<Real> random_values(Index n, std::uint64_t site, double scale = 1) {
  const Rng rng(5, 0, site);
  std::vector<Real> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(scale * rng.normal(i));
  return values;
}

double ulps(Real got, long double wanted) {
  const Real rounded = static_cast<Real>(wanted);
  const long double unit = std::nextafter(std::abs(rounded), kInf) - std::abs(rounded);
  return static_cast<double>(std::abs(got - wanted) / unit);
}

/// Runs `kernel(y, n)` in a guarded buffer: whatever lies before and behind the n elements must stay.
template <typename F>
std::vector<Real> guarded(Index n, F&& kernel) {
  constexpr Index kGuard = 70;
  std::vector<Real> buffer(static_cast<std::size_t>(n + 2 * kGuard), Real{-77});
  kernel(buffer.data() + kGuard, n);
  CHECK(std::all_of(buffer.begin(), buffer.begin() + kGuard, [](Real v) { return v == -77; }));
  CHECK(std::all_of(buffer.end() - kGuard, buffer.end(), [](Real v) { return v == -77; }));
  return {buffer.begin() + kGuard, buffer.end() - kGuard};
}

}  // namespace

TEST_CASE("elementwise kernels equal plain loops at every length, and write nothing else") {
  for (const Index n : kLengths) {
    CAPTURE(n);
    const auto a = random_values(n, 1);
    const auto b = random_values(n, 2);
    const auto c = random_values(n, 3);
    const auto check = [&](const std::vector<Real>& y, auto&& wanted) {
      for (std::size_t i = 0; i < y.size(); ++i)
        REQUIRE(y[i] == doctest::Approx(static_cast<double>(wanted(i))).epsilon(1e-6));
    };
    check(guarded(n, [](Real* y, Index m) { kernels::fill(y, 3, m); }), [](std::size_t) { return Real{3}; });
    check(guarded(n, [&](Real* y, Index m) { kernels::add(y, a.data(), b.data(), m); }),
          [&](std::size_t i) { return a[i] + b[i]; });
    check(guarded(n, [&](Real* y, Index m) { kernels::add_into(y, a.data(), m); }),
          [&](std::size_t i) { return a[i] - 77; });
    check(guarded(n, [&](Real* y, Index m) { kernels::axpy(y, 2, a.data(), m); }),
          [&](std::size_t i) { return 2 * a[i] - 77; });
    check(guarded(n, [&](Real* y, Index m) { kernels::scale(y, -3, a.data(), m); }),
          [&](std::size_t i) { return -3 * a[i]; });
    check(guarded(n, [&](Real* y, Index m) { kernels::multiply(y, a.data(), b.data(), m); }),
          [&](std::size_t i) { return a[i] * b[i]; });
    check(guarded(n, [&](Real* y, Index m) { kernels::multiply_add(y, a.data(), b.data(), m); }),
          [&](std::size_t i) { return a[i] * b[i] - 77; });
    check(guarded(n, [&](Real* y, Index m) { kernels::exp(y, a.data(), m); }),
          [&](std::size_t i) { return std::exp(a[i]); });
    check(guarded(n, [&](Real* y, Index m) { kernels::exp_shifted(y, a.data(), 2, m); }),
          [&](std::size_t i) { return std::exp(a[i] - 2); });
    check(guarded(n, [&](Real* y, Index m) { kernels::exp_difference(y, a.data(), b.data(), m); }),
          [&](std::size_t i) { return std::exp(a[i] - b[i]); });
    check(guarded(n, [&](Real* y, Index m) { kernels::multiply_exp_difference(y, a.data(), b.data(), c.data(), m); }),
          [&](std::size_t i) { return a[i] * std::exp(b[i] - c[i]); });
  }
}

TEST_CASE("reductions equal plain sums at every length") {
  for (const Index n : kLengths) {
    CAPTURE(n);
    const auto a = random_values(n, 1);
    const auto b = random_values(n, 2);
    double dot = 0, sum = 0, squares = 0, exps = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      dot += static_cast<double>(a[i]) * b[i];
      sum += a[i];
      squares += static_cast<double>(a[i]) * a[i];
      exps += std::exp(0.5 * a[i] - 1);
    }
    const double tolerance = sizeof(Real) == 4 ? 3e-7 : 1e-15;
    const double scale = tolerance * static_cast<double>(n + 1);
    CHECK(std::abs(kernels::dot(a.data(), b.data(), n) - dot) <= scale);
    CHECK(std::abs(kernels::sum(a.data(), n) - sum) <= scale);
    CHECK(std::abs(kernels::sum_of_squares(a.data(), n) - squares) <= scale);
    std::vector<Real> y(a.size());
    CHECK(std::abs(kernels::exp_scaled_sum(y.data(), a.data(), Real{0.5}, 1, n) - exps) <= scale);
    if (n > 0) CHECK(kernels::max(a.data(), n) == *std::max_element(a.begin(), a.end()));
    CHECK(kernels::all_finite(a.data(), n));
  }
}

TEST_CASE("max of negative values does not see zeros behind the tail, and keeps NaN") {
  for (const Index n : {1, 5, 9, 17, 33, 65}) {
    std::vector<Real> x(static_cast<std::size_t>(n), Real{-4});
    x.back() = -3;
    CHECK(kernels::max(x.data(), n) == -3);
    for (std::size_t at = 0; at < x.size(); ++at) {
      auto holed = x;
      holed[at] = kNan;
      CHECK(std::isnan(kernels::max(holed.data(), n)));
    }
  }
}

TEST_CASE("all_finite sees a NaN or an infinity at every place") {
  for (const Real bad : {kNan, kInf, -kInf}) {
    for (std::size_t at = 0; at < 70; ++at) {
      std::vector<Real> x(70, Real{1});
      x[at] = bad;
      CHECK_FALSE(kernels::all_finite(x.data(), 70));
    }
  }
  const std::vector<Real> huge(70, std::numeric_limits<Real>::max());
  CHECK(kernels::all_finite(huge.data(), 70));
}

TEST_CASE("exp is exact to about one unit in the last place over its whole range") {
  const double low = sizeof(Real) == 4 ? -86.9 : -707.9;
  const double high = sizeof(Real) == 4 ? 88.72 : 709.78;
  constexpr Index kCount = 200'000;
  std::vector<Real> x(kCount), y(kCount);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<Real>(low + (high - low) * static_cast<double>(i) / (kCount - 1));
  kernels::exp(y.data(), x.data(), kCount);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(y[i], std::exp(static_cast<long double>(x[i]))));
  MESSAGE("worst error of exp: ", worst, " units in the last place");
  CHECK(worst < 1.5);
}

TEST_CASE("exp at the ends of its range") {
  const Real lowest = std::numeric_limits<Real>::lowest();
  const std::vector<Real> x = {-kInf, lowest, -1e30f, -1000, -88, kInf, std::numeric_limits<Real>::max(),
                               1000,  0,      kNan};
  std::vector<Real> y(x.size());
  kernels::exp(y.data(), x.data(), static_cast<Index>(x.size()));
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == 0);
  CHECK(y[4] < 1e-37);
  for (std::size_t i = 5; i < 8; ++i) CHECK(y[i] == kInf);
  CHECK(y[8] == 1);
  CHECK(std::isnan(y[9]));
}

TEST_CASE("an element's result does not depend on its place") {
  const auto x = random_values(200, 7, 20);
  std::vector<Real> whole(x.size());
  kernels::exp(whole.data(), x.data(), 200);
  for (std::size_t begin : {1u, 3u, 64u, 150u, 199u}) {
    std::vector<Real> part(x.size() - begin);
    kernels::exp(part.data(), x.data() + begin, static_cast<Index>(part.size()));
    CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

TEST_CASE("softmax rows: sum 1, also of large and of negatively scaled values; backward against differences") {
  for (const Index n : {1, 7, 8, 9, 63, 64, 65}) {
    for (const Real scale : {Real{0.5}, Real{-2}}) {
      CAPTURE(n);
      auto x = random_values(n, 4, 30);
      std::vector<Real> y(x.size());
      kernels::softmax_row(y.data(), x.data(), scale, n);
      double total = 0, largest = -1e300;
      for (const Real v : x) largest = std::max(largest, static_cast<double>(scale) * v);
      for (const Real v : x) total += std::exp(static_cast<double>(scale) * v - largest);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(y[i] == doctest::Approx(std::exp(static_cast<double>(scale) * x[i] - largest) / total).epsilon(1e-5));

      const auto dy = random_values(n, 5);
      std::vector<Real> dx(x.size());
      kernels::softmax_row_backward(dx.data(), dy.data(), y.data(), scale, n);
      double inner = 0;
      for (std::size_t i = 0; i < x.size(); ++i) inner += static_cast<double>(dy[i]) * y[i];
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(std::abs(dx[i] - scale * y[i] * (dy[i] - inner)) < (sizeof(Real) == 4 ? 1e-5 : 1e-14));
    }
  }
  std::vector<Real> x = {1, kNan, 2}, y(3);
  kernels::softmax_row(y.data(), x.data(), 1, 3);
  for (const Real v : y) CHECK(std::isnan(v));
}

}  // namespace quipu
