#pragma once
#include "tensor/weight.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y = x W.  x: [n,out];  y: [n,in], written in full. For parts of a weight, such as one head: packed rows are expanded
/// on the calling thread. Throws ShapeError where the widths disagree.
void multiply_transposed(Matrix y, Matrix x, const Weight& weight);

}  // namespace quipu::inline QUIPU_REAL_NS
