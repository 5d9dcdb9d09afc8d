#pragma once
#include "base/real.h"

/// One row of a normalisation, forward and backward. x^ = (x - mean) inverse, y = x^ w + b; `weight` and `bias` may be
/// null (1 and 0). Sums run in a fixed order on the calling thread; nothing is allocated.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// What a row is normalised with, and what the backward pass keeps of it.
struct RowScale {
  Real mean;
  Real inverse;
};

struct RowMoments {
  Real mean;
  Real variance;  ///< mean square distance from the mean
};
/// In two passes: exact where the mean is large against the spread. n >= 1.
RowMoments row_moments(const Real* x, Index n);

/// y = (x - mean) inverse weight + bias. y may be x.
void normalize_row(Real* y, const Real* x, RowScale by, const Real* weight, const Real* bias, Index n);

struct RowSums {
  Real plain;    ///< sum of dy w
  Real against;  ///< sum of dy w x^
};
RowSums norm_row_sums(const Real* dy, const Real* x, RowScale by, const Real* weight, Index n);

/// dx = inverse (dy w - plain - x^ against). dx may be dy.
void norm_row_backward(Real* dx, const Real* dy, const Real* x, RowScale by, const Real* weight, RowSums less, Index n);

/// dweight += dy x^, dbias += dy; dbias may be null.
void norm_row_weights(Real* dweight, Real* dbias, const Real* dy, const Real* x, RowScale by, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
