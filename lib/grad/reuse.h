#pragma once
#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Where a backward function writes a result of the same count as `dy`: into dy itself where nobody else holds its
/// storage (the kernels allow that), else into a new tensor. dy must not be needed afterwards.
inline Tensor reuse_or_new(const Tensor& dy) { return dy.is_unique() ? dy : Tensor(dy.shape()); }

}  // namespace quipu::inline QUIPU_REAL_NS
