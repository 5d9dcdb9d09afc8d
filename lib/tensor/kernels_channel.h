#pragma once
#include "base/real.h"

/// SIMD kernels of convolutions and scans whose channels do not see each other: vectors run over channels. As those of
/// kernels.h they run on the calling thread, never allocate, and do the same for a channel wherever it stands.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// y = b + sum over j < count of taps[j] rows[j], elementwise over n channels; no b where it is null.
void weighted_rows(Real* y, const Real* b, const Real* const* taps, const Real* const* rows, Index count, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
