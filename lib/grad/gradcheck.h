#pragma once
#include <functional>
#include <vector>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Compares the tape's gradients of `fn` with central differences along random directions.
/// The loss is the sum of all outputs times fixed random numbers, so that no error cancels by symmetry. For every input
/// and each of three directions the best of several step lengths counts; the error is relative to the largest
/// of the derivative, the gradient's length, and 1e-5 of the loss. Returns the worst over inputs and directions; 1e-6
/// is a good bound in double. `fn` must be a pure function of its inputs; undefined inputs and outputs are left out.
double gradient_error(const std::function<std::vector<Var>(Tape&, const std::vector<Var>&)>& fn,
                      const std::vector<Tensor>& inputs);

}  // namespace quipu::inline QUIPU_REAL_NS
