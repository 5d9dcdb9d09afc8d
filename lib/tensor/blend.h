#pragma once
#include "base/real.h"

/// Weighted means of two rows, elementwise:  y = a + (b - a) (w + o), where the offset o may be null (0). Kernels as in
/// tensor/kernels.h; outputs must not overlap inputs.
namespace quipu::inline QUIPU_REAL_NS::kernels {

void blend(Real* y, const Real* a, const Real* b, const Real* w, const Real* o, Index n);
/// da += dy (1 - w - o);  db += dy (w + o). Either may be null.
void blend_backward(Real* da, Real* db, const Real* dy, const Real* w, const Real* o, Index n);
/// d = dy (b - a), the gradient of the weight: added to sum, and written to `each` unless that is null.
void blend_weight_gradient(Real* sum, Real* each, const Real* dy, const Real* a, const Real* b, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
