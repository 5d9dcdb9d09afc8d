#pragma once
#include <functional>
#include <vector>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Runs `fn(tape, inputs)` without keeping its intermediate values; they are recomputed in the backward pass, with
/// gradients bit-identical to the plain ones. `fn` must be a pure function of its inputs and of parameters (random
/// numbers are, since they are counter-based). Outputs may be undefined.
std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs,
                            std::function<std::vector<Var>(Tape&, const std::vector<Var>&)> fn);

/// The same for an `fn` in which no row of x depends on another one: it runs on slices of rows, forward and backward,
/// so that the intermediate values of one slice alone take room. A parameter's gradient is then a sum over slices: the
/// plain one to rounding.  x, the result: [B,T,D];  of fn: [1,n,D], n rows of x.
Var checkpoint_rows(Tape& tape, const Var& x, std::function<Var(Tape&, const Var&)> fn);

}  // namespace quipu::inline QUIPU_REAL_NS
