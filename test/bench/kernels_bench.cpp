// Kernels against libm loops, in ns an element: arrays of 4096, in the first-level cache.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "tensor/activation.h"
#include "tensor/kernels.h"

namespace {

using namespace quipu;

constexpr Index kCount = 4096;
constexpr Real kGelu = static_cast<Real>(0.79788456080286536);
constexpr Real kCubic = static_cast<Real>(0.044715);

/// The best of many runs: what the machine can do, not what it was doing.
template <typename F>
double ns_an_element(F&& run) {
  double best = 1e300;
  for (int repeat = 0; repeat < 400; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / (4 * kCount));
  }
  return best;
}

template <typename F, typename G>
void compare(const char* name, F&& kernel, G&& plain) {
  const double fast = ns_an_element(kernel);
  const double slow = ns_an_element(plain);
  fmt::print("{:<28} {:8.3f} {:8.3f} {:8.1f}x\n", name, fast, slow, slow / fast);
}

template <typename F>
void compare_activation(Activation activation, const std::vector<Real>& x, std::vector<Real>& y, F&& plain) {
  compare(
      activation_name(activation).data(), [&] { kernels::activate(activation, y.data(), x.data(), kCount); },
      [&] { std::transform(x.begin(), x.end(), y.begin(), plain); });
}

}  // namespace

int main() {
  const Rng rng(1, 0, 0);
  std::vector<Real> x(kCount), y(kCount), z(kCount), w(kCount);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<Real>(rng.normal(i));
    w[i] = static_cast<Real>(rng.normal(i + kCount));
  }
  fmt::print("{:<28} {:>8} {:>8} {:>9}\n", "kernel", "ns", "libm ns", "ratio");
  compare(
      "exp", [&] { kernels::exp(y.data(), x.data(), kCount); },
      [&] { std::transform(x.begin(), x.end(), y.begin(), [](Real v) { return std::exp(v); }); });
  compare(
      "softmax_row", [&] { kernels::softmax_row(y.data(), x.data(), 1, kCount); },
      [&] {
        const Real top = *std::max_element(x.begin(), x.end());
        Real total = 0;
        for (std::size_t i = 0; i < x.size(); ++i) total += y[i] = std::exp(x[i] - top);
        for (Real& v : y) v /= total;
      });
  volatile Real sink = 0;
  compare(
      "dot", [&] { sink = kernels::dot(x.data(), w.data(), kCount); },
      [&] {
        Real total = 0;
        for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * w[i];
        sink = total;
      });
  const auto sigmoid = [](Real v) { return 1 / (1 + std::exp(-v)); };
  compare_activation(Activation::sigmoid, x, y, sigmoid);
  compare_activation(Activation::silu, x, y, [&](Real v) { return v * sigmoid(v); });
  const auto gelu = [](Real v) { return Real{0.5} * v * (1 + std::tanh(kGelu * (v + kCubic * v * v * v))); };
  compare_activation(Activation::gelu, x, y, gelu);
  compare_activation(Activation::tanh, x, y, [](Real v) { return std::tanh(v); });
  compare_activation(Activation::softplus, x, y, [](Real v) { return std::log1p(std::exp(v)); });
  compare_activation(Activation::elu1, x, y, [](Real v) { return v > 0 ? v + 1 : std::exp(v); });
  compare(
      "gelu backward", [&] { kernels::activate_backward(Activation::gelu, y.data(), w.data(), x.data(), kCount); },
      [&] {
        for (std::size_t i = 0; i < x.size(); ++i) {
          const Real v = x[i];
          const Real t = std::tanh(kGelu * (v + kCubic * v * v * v));
          y[i] = w[i] * Real{0.5} * (1 + t + v * (1 - t * t) * kGelu * (1 + 3 * kCubic * v * v));
        }
      });
  compare(
      "silu gated backward",
      [&] { kernels::gated_backward(Activation::silu, y.data(), z.data(), w.data(), x.data(), w.data(), kCount); },
      [&] {
        for (std::size_t i = 0; i < x.size(); ++i) {
          const Real s = sigmoid(x[i]);
          y[i] = w[i] * w[i] * s * (1 + x[i] * (1 - s));
          z[i] = w[i] * x[i] * s;
        }
      });
  return 0;
}
