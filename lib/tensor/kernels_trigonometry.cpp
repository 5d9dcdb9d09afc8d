#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_trigonometry.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/kernels.h"
#include "tensor/simd_inl.h"
// last: it needs what the above includes
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

void sine_cosine(Real* sine, Real* cosine, const Real* x, Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V angle = load(x);
    store(hn::Sin(D(), angle), sine);
    store(hn::Cos(D(), angle), cosine);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(sine_cosine);

void sine_cosine(Real* sine, Real* cosine, const Real* x, Index n) {
  HWY_DYNAMIC_DISPATCH(sine_cosine)(sine, cosine, x, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
