#pragma once
#include <algorithm>
#include <cmath>

#include "grad/parameter.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Where the biases of a state space's step sizes start: softplus of them is spread over [0.001, 0.1], evenly in
/// their logarithms.
inline Initializer time_step_biases() {
  return [](std::span<Real> values, const Rng& rng) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double step = std::max(1e-4, 0.001 * std::exp(rng.uniform(i) * std::log(100.0)));
      values[i] = static_cast<Real>(step + std::log(-std::expm1(-step)));
    }
  };
}

}  // namespace quipu::inline QUIPU_REAL_NS
