#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_channel.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include <algorithm>

#include "tensor/kernels_channel.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// y = start + sum of `kCount` weighted rows, whose addresses fit into registers; start may be y, or null for 0.
template <int kCount>
HWY_INLINE void add_weighted(Real* y, const Real* start, const Real* const* taps, const Real* const* rows, Index n) {
  const Real *w[kCount], *x[kCount];
  std::copy_n(taps, kCount, w);
  std::copy_n(rows, kCount, x);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    V sum = start == nullptr ? hn::Zero(D()) : load(start);
    for (int j = 0; j < kCount; ++j) sum = hn::MulAdd(load(w[j]), load(x[j]), sum);
    store(sum, y);
  });
}

void weighted_rows(Real* y, const Real* b, const Real* const* taps, const Real* const* rows, Index count, Index n) {
  const Real* start = b;
  Index j = 0;
  for (; j + 4 <= count; j += 4, start = y) add_weighted<4>(y, start, taps + j, rows + j, n);
  switch (count - j) {
    case 3:
      return add_weighted<3>(y, start, taps + j, rows + j, n);
    case 2:
      return add_weighted<2>(y, start, taps + j, rows + j, n);
    case 1:
      return add_weighted<1>(y, start, taps + j, rows + j, n);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(weighted_rows);

void weighted_rows(Real* y, const Real* b, const Real* const* taps, const Real* const* rows, Index count, Index n) {
  HWY_DYNAMIC_DISPATCH(weighted_rows)(y, b, taps, rows, count, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
