#pragma once
#include "base/real.h"

/// Rows of numbers added up in double over the tokens of a chunk, one sum a channel. Kernels as in tensor/kernels.h.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// sums += x, and `rounded` = sums. Returns whether every sum is above `low` (false where one is no number).
bool add_to_sums(double* sums, Real* rounded, const Real* x, double low, Index n);
/// sums += a b.
void add_products(double* sums, const Real* a, const Real* b, Index n);
/// sums -= a b.
void subtract_products(double* sums, const Real* a, const Real* b, Index n);
/// rounded = sums.
void round_sums(Real* rounded, const double* sums, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
