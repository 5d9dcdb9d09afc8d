#pragma once
#include "base/rng.h"
#include "grad/tape.h"
#include "tensor/activation.h"

/// Elementwise operations. Shapes must agree exactly (ShapeError). They run in parallel over fixed blocks: results do
/// not depend on the number of threads.
namespace quipu::inline QUIPU_REAL_NS {

/// y = a + b.
Var add(Tape& tape, const Var& a, const Var& b);
/// y = a b.
Var multiply(Tape& tape, const Var& a, const Var& b);
/// y = c x.
Var scale(Tape& tape, const Var& x, Real c);

/// y = f(x). Keeps y, or x where the backward pass needs that (silu, gelu).
Var activate(Tape& tape, const Var& x, Activation activation);
/// y = x within [low, high], the nearer end outside, where the gradient is 0.
Var clamp(Tape& tape, const Var& x, Real low, Real high);
/// y = f(gate) x, as in a gated linear unit. Keeps gate and x, and recomputes f(gate).
Var gated(Tape& tape, const Var& gate, const Var& x, Activation activation);

/// Each element of x is dropped (0) with probability p, else multiplied by 1 / (1 - p); p = 0 returns x itself. The
/// mask is a function of `rng` and the element's index, and is recomputed in the backward pass.
/// Throws UsageError unless 0 <= p < 1.
Var dropout(Tape& tape, const Var& x, double p, const Rng& rng);

/// y = f(x) over plain arrays on the calling thread, for one step of a recurrence. y may be x.
inline void activate_into(Activation activation, Real* y, const Real* x, Index n) {
  kernels::activate(activation, y, x, n);
}
inline void clamp_into(Real* y, const Real* x, Real low, Real high, Index n) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

}  // namespace quipu::inline QUIPU_REAL_NS
