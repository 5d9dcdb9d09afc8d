#include "tensor/bounded_gate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "compare.h"

using namespace quipu;

namespace {

/// Pairs of (f, beta), from where the gate is shut to where it is open.
struct Pairs {
  std::vector<Real> f, beta;
  Pairs() {
    for (const double x : {-1e4, -90.0, -30.0, -3.0, -0.2, 0.0, 0.2, 3.0, 30.0, 1e4})
      for (const double b : {0.0, 1e-20, 1e-3, 0.3, 0.9, 0.999}) {
        f.push_back(static_cast<Real>(x));
        beta.push_back(static_cast<Real>(b));
      }
  }
  Index count() const { return static_cast<Index>(f.size()); }
};

long double log_gate(long double f, long double beta) {
  const long double e = std::exp(-std::abs(f));
  if (f >= 0) return std::log1p(beta * e) - std::log1p(e);
  return (beta == 0 ? f : std::log(beta + e)) - std::log1p(e);
}

constexpr double kExact = sizeof(Real) == 8 ? 1e-14 : 1e-6;

}  // namespace

TEST_CASE("bounded gate is exact from shut to open") {
  const Pairs p;
  std::vector<Real> g(p.f.size()), k(p.f.size());
  kernels::bounded_gate(g.data(), k.data(), p.f.data(), p.beta.data(), p.count());
  for (std::size_t i = 0; i < p.f.size(); ++i) {
    CAPTURE(p.f[i]);
    CAPTURE(p.beta[i]);
    const long double f = p.f[i], beta = p.beta[i], wanted = log_gate(f, beta);
    const long double key = (1 - beta) / (1 + std::exp(f));
    CHECK(std::abs(static_cast<double>(g[i] - wanted)) <=
          kExact * std::max(1.0, std::abs(static_cast<double>(wanted))));
    CHECK(std::abs(static_cast<double>(k[i] - key)) <= kExact * static_cast<double>(key) + 1e-37);
  }
}

TEST_CASE("bounded gate gradients agree with the formulas") {
  const Pairs p;
  std::vector<Real> dg(p.f.size(), 2), dk(p.f.size(), 3), df(p.f.size()), dbeta(p.f.size());
  kernels::bounded_gate_backward(df.data(), dbeta.data(), dg.data(), dk.data(), p.f.data(), p.beta.data(), p.count());
  for (std::size_t i = 0; i < p.f.size(); ++i) {
    CAPTURE(p.f[i]);
    CAPTURE(p.beta[i]);
    const long double f = p.f[i], beta = p.beta[i];
    const long double open = 1 / (1 + std::exp(-f)), closed = 1 / (1 + std::exp(f));
    const long double alpha = beta + (1 - beta) * open, slope = (1 - beta) * open * closed;
    const double by_f = static_cast<double>(2 * (1 - beta) * closed * (alpha > 0 ? open / alpha : 1) - 3 * slope);
    CHECK(std::abs(df[i] - by_f) <= 4 * kExact * std::max(1.0, std::abs(by_f)));
    const double by_beta = beta == 0 ? 0 : static_cast<double>(2 * closed / alpha - 3 * closed);
    CHECK(std::abs(dbeta[i] - by_beta) <= 4 * kExact * std::max(1.0, std::abs(by_beta)));
  }
}
