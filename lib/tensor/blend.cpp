#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/blend.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/blend.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

void blend(Real* y, const Real* a, const Real* b, const Real* w, const Real* o, Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V from = load(a);
    const V weight = o == nullptr ? load(w) : hn::Add(load(w), load(o));
    store(hn::MulAdd(hn::Sub(load(b), from), weight, from), y);
  });
}

void blend_backward(Real* da, Real* db, const Real* dy, const Real* w, const Real* o, Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V d = load(dy);
    const V to_b = hn::Mul(d, o == nullptr ? load(w) : hn::Add(load(w), load(o)));
    if (da != nullptr) store(hn::Add(load(da), hn::Sub(d, to_b)), da);
    if (db != nullptr) store(hn::Add(load(db), to_b), db);
  });
}

void blend_weight_gradient(Real* sum, Real* each, const Real* dy, const Real* a, const Real* b, Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V d = hn::Mul(load(dy), hn::Sub(load(b), load(a)));
    store(hn::Add(load(sum), d), sum);
    if (each != nullptr) store(d, each);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(blend);
HWY_EXPORT(blend_backward);
HWY_EXPORT(blend_weight_gradient);

void blend(Real* y, const Real* a, const Real* b, const Real* w, const Real* o, Index n) {
  HWY_DYNAMIC_DISPATCH(blend)(y, a, b, w, o, n);
}
void blend_backward(Real* da, Real* db, const Real* dy, const Real* w, const Real* o, Index n) {
  HWY_DYNAMIC_DISPATCH(blend_backward)(da, db, dy, w, o, n);
}
void blend_weight_gradient(Real* sum, Real* each, const Real* dy, const Real* a, const Real* b, Index n) {
  HWY_DYNAMIC_DISPATCH(blend_weight_gradient)(sum, each, dy, a, b, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
