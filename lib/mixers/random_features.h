#pragma once
#include "grad/parameter.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Random directions of a feature map, [rows,width]: normal vectors, orthogonal within each block of `width` rows, each
/// with the length of a normal vector of its own. With `signs` the second half of the rows is the first, negated.
Initializer orthogonal_features(Index rows, Index width, bool signs = false);

}  // namespace quipu::inline QUIPU_REAL_NS
