#include "tensor/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tolerance.h"

namespace quipu {
namespace {

/// In long double, with the formulas of the definitions.
long double reference(Activation activation, long double x) {
  const long double sigmoid = 1 / (1 + std::exp(-x));
  switch (activation) {
    case Activation::identity:
      return x;
    case Activation::sigmoid:
      return sigmoid;
    case Activation::silu:
      return x * sigmoid;
    case Activation::gelu:
      return 0.5L * x * (1 + std::tanh(0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0L);
    case Activation::relu2:
      return std::max(x, 0.0L) * std::max(x, 0.0L);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::elu1:
      return x > 0 ? x + 1 : std::exp(x);
    case Activation::log_sigmoid:
      return -(std::max(-x, 0.0L) + std::log1p(std::exp(-std::abs(x))));
    case Activation::exp:
      return std::exp(x);
    case Activation::softplus:
      return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x)));
  }
  return NAN;
}

std::vector<Real> grid() {
  std::vector<Real> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<Real>(i * 0.00625));
  for (const double tiny : {1e-3, 1e-5, 1e-8, 1e-12}) {
    x.push_back(static_cast<Real>(tiny));
    x.push_back(static_cast<Real>(-tiny));
  }
  return x;
}

}  // namespace

TEST_CASE("activations are exact to a few units in the last place, small values included") {
  const std::vector<Real> x = grid();
  std::vector<Real> y(x.size());
  for (const Activation activation : kActivations) {
    kernels::activate(activation, y.data(), x.data(), static_cast<Index>(x.size()));
    long double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double wanted = reference(activation, x[i]);
      // gelu and silu multiply x by a gate whose exponent carries the rounding of x^3: relative to |x| there.
      const bool product = activation == Activation::gelu || activation == Activation::silu;
      const long double scale = product ? std::abs(static_cast<long double>(x[i])) : std::abs(wanted);
      if (scale > 0) worst = std::max(worst, std::abs(y[i] - wanted) / scale);
    }
    INFO(activation_name(activation));
    CHECK(static_cast<double>(worst / std::numeric_limits<Real>::epsilon()) < 4);
  }
}

TEST_CASE("slopes from what is kept equal differences of the definition") {
  const std::vector<Real> x = grid();
  const auto n = static_cast<Index>(x.size());
  std::vector<Real> y(x.size()), slope(x.size());
  const std::vector<Real> ones(x.size(), Real{1});
  for (const Activation activation : kActivations) {
    INFO(activation_name(activation));
    kernels::activate(activation, y.data(), x.data(), n);
    kernels::activate_backward(activation, slope.data(), ones.data(), (keeps_output(activation) ? y : x).data(), n);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      constexpr long double h = 1e-6L;
      if (std::abs(x[i]) < 1e-4) continue;  // relu has no slope there
      const long double wanted = (reference(activation, x[i] + h) - reference(activation, x[i] - h)) / (2 * h);
      const long double scale = std::max(std::abs(wanted), 1.0L);
      worst = std::max(worst, static_cast<double>(std::abs(slope[i] - wanted) / scale));
    }
    CHECK(worst < (kIsDouble ? 1e-10 : 1e-6));
  }
}

TEST_CASE("log_sigmoid's slope keeps its digits where the gate is nearly open") {
  const std::vector<Real> x = {10, 15};
  std::vector<Real> y(2), slope(2);
  const std::vector<Real> ones(2, Real{1});
  kernels::activate(Activation::log_sigmoid, y.data(), x.data(), 2);
  kernels::activate_backward(Activation::log_sigmoid, slope.data(), ones.data(), y.data(), 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(slope[i] == doctest::Approx(1 / (1 + std::exp(static_cast<double>(x[i])))).epsilon(1e-6));
}

TEST_CASE("NaN stays NaN, forward, backward and gated; infinities go to the limits") {
  constexpr Real kInf = std::numeric_limits<Real>::infinity();
  const std::vector<Real> x(19, std::numeric_limits<Real>::quiet_NaN());
  const std::vector<Real> ones(x.size(), Real{1});
  std::vector<Real> y(x.size()), z(x.size());
  const auto all_nan = [](const std::vector<Real>& v) {
    return std::all_of(v.begin(), v.end(), [](Real e) { return std::isnan(e); });
  };
  for (const Activation activation : kActivations) {
    INFO(activation_name(activation));
    kernels::activate(activation, y.data(), x.data(), 19);
    CHECK(all_nan(y));
    if (activation != Activation::identity) {
      kernels::activate_backward(activation, y.data(), ones.data(), x.data(), 19);
      CHECK(all_nan(y));
    }
    kernels::gated(activation, y.data(), x.data(), ones.data(), 19);
    CHECK(all_nan(y));
    kernels::gated_backward(activation, y.data(), z.data(), ones.data(), x.data(), ones.data(), 19);
    CHECK(all_nan(z));
  }
  const std::vector<Real> ends = {-kInf, kInf, -200, 200};
  std::vector<Real> v(4);
  kernels::activate(Activation::sigmoid, v.data(), ends.data(), 4);
  CHECK(v[0] == 0);
  CHECK(v[1] == 1);
  kernels::activate(Activation::tanh, v.data(), ends.data(), 4);
  CHECK(v[0] == -1);
  CHECK(v[1] == 1);
  kernels::activate(Activation::log_sigmoid, v.data(), ends.data(), 4);
  CHECK(v[0] == -kInf);
  CHECK(v[1] == 0);
  CHECK(v[2] == -200);
  kernels::activate(Activation::softplus, v.data(), ends.data(), 4);
  CHECK(v[1] == kInf);
  CHECK(v[3] == 200);
}

TEST_CASE("gated kernels equal products, at every length and in place") {
  const std::vector<Real> all = grid();
  for (const std::size_t n : {0u, 1u, 7u, 8u, 9u, 63u, 64u, 65u}) {
    CAPTURE(n);
    const auto m = static_cast<Index>(n);
    const std::vector<Real> gate(all.begin() + 3900, all.begin() + 3900 + static_cast<std::ptrdiff_t>(n));
    std::vector<Real> x(n, Real{3}), f(n), y(n), dg(n), dx(n), slope(n);
    const std::vector<Real> dy(n, Real{2});
    for (const Activation activation : kActivations) {
      INFO(activation_name(activation));
      kernels::activate(activation, f.data(), gate.data(), m);
      kernels::gated(activation, y.data(), gate.data(), x.data(), m);
      kernels::gated_backward(activation, dg.data(), dx.data(), dy.data(), gate.data(), x.data(), m);
      kernels::activate_backward(activation, slope.data(), dy.data(), (keeps_output(activation) ? f : gate).data(), m);
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(y[i] == f[i] * 3);
        CHECK(dx[i] == f[i] * 2);
        CHECK(dg[i] == doctest::Approx(static_cast<double>(3 * slope[i])));
      }
      std::vector<Real> in_place = gate;
      kernels::activate(activation, in_place.data(), in_place.data(), m);
      CHECK(in_place == f);
    }
  }
}

TEST_CASE("activations have names") {
  for (const Activation activation : kActivations)
    CHECK(activation_from_name(activation_name(activation)) == activation);
  CHECK_THROWS_WITH_AS(activation_from_name("gellu"), doctest::Contains("there is no 'gellu'"), UsageError);
}

}  // namespace quipu
