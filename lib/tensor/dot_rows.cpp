// Of its own, without the target AVX3_DL of packed_rows.cpp: for it, GCC 12 moves this loop's loads ahead of its
// prefetches, and a tenth of the bandwidth is lost.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/dot_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "tensor/packed_rows.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// Asks for what is needed 2 KiB further on: the hardware's own prefetching ends at each page.
HWY_INLINE void prefetch(const Real* from) { hwy::Prefetch(reinterpret_cast<const std::byte*>(from) + 2048); }

HWY_INLINE Real dot_row(const Real* w, const Real* x, Index n) {
  return sum_of(n, [w, x](auto load) QUIPU_LANEWISE { return hn::Mul(load(w), load(x)); });
}

void dot_rows(Real* y, Matrix w, Index begin, Index end, const Real* x, const Real* bias) {
  const D d;
  const Index width = lanes(), n = w.cols;
  for (Index r = begin; r < end; ++r) {
    const Real* const row = w.row(r);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    Index i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      for (Index at = 0; at < 4 * width; at += static_cast<Index>(64 / sizeof(Real))) prefetch(row + i + at);
      s0 = hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), s0);
      s1 = hn::MulAdd(hn::LoadU(d, row + i + width), hn::LoadU(d, x + i + width), s1);
      s2 = hn::MulAdd(hn::LoadU(d, row + i + 2 * width), hn::LoadU(d, x + i + 2 * width), s2);
      s3 = hn::MulAdd(hn::LoadU(d, row + i + 3 * width), hn::LoadU(d, x + i + 3 * width), s3);
    }
    Real total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
    if (i < n) total += dot_row(row + i, x + i, n - i);
    y[r] = bias == nullptr ? total : total + bias[r];
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(dot_rows);

void dot_rows(Real* y, Matrix w, Index begin, Index end, const Real* x, const Real* bias) {
  HWY_DYNAMIC_DISPATCH(dot_rows)(y, w, begin, end, x, bias);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
