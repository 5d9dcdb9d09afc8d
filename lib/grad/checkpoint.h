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

}  // namespace quipu::inline QUIPU_REAL_NS
