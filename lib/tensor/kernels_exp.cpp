#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_exp.cpp"
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

void exp(Real* y, const Real* x, Index n) {
  map(y, x, n, [](V v) QUIPU_LANEWISE { return exp_of(v); });
}

void one_minus_exp(Real* y, const Real* x, Index n) {
  map(y, x, n, [](V v) QUIPU_LANEWISE { return hn::Neg(hn::Expm1(D(), v)); });
}

void exp_shifted(Real* y, const Real* x, Real shift, Index n) {
  const V s = hn::Set(D(), shift);
  map(y, x, n, [s](V v) QUIPU_LANEWISE { return exp_of(hn::Sub(v, s)); });
}

void exp_difference(Real* y, const Real* a, const Real* b, Index n) {
  map(y, a, b, n, [](V u, V v) QUIPU_LANEWISE { return exp_of(hn::Sub(u, v)); });
}

void multiply_exp_difference(Real* y, const Real* x, const Real* a, const Real* b, Index n) {
  map(y, x, a, b, n, [](V v, V u, V w) QUIPU_LANEWISE { return hn::Mul(v, exp_of(hn::Sub(u, w))); });
}

Real exp_scaled_sum(Real* y, const Real* x, Real scale, Real shift, Index n) {
  const V factor = hn::Set(D(), scale);
  const V s = hn::Set(D(), shift);
  V even = hn::Zero(D());
  V odd = even;
  for_vectors(n, [&](auto load, auto store, Index count) QUIPU_LANEWISE {
    const V e = exp_of(hn::MulSub(factor, load(x), s));
    store(e, y);
    const V next = hn::Add(even, count < lanes() ? keep_first(e, count) : e);
    even = odd;
    odd = next;
  });
  return hn::GetLane(hn::SumOfLanes(D(), hn::Add(even, odd)));
}

void softmax_row_backward(Real* dx, const Real* dy, const Real* y, Real scale, Index n) {
  const Real inner = sum_of(n, [dy, y](auto load) QUIPU_LANEWISE { return hn::Mul(load(dy), load(y)); });
  const V mean = hn::Set(D(), inner);
  const V factor = hn::Set(D(), scale);
  map(dx, dy, y, n, [mean, factor](V g, V p) QUIPU_LANEWISE { return hn::Mul(hn::Mul(factor, p), hn::Sub(g, mean)); });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(exp);
HWY_EXPORT(one_minus_exp);
HWY_EXPORT(exp_shifted);
HWY_EXPORT(exp_difference);
HWY_EXPORT(multiply_exp_difference);
HWY_EXPORT(exp_scaled_sum);
HWY_EXPORT(softmax_row_backward);

void exp(Real* y, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(exp)(y, x, n); }
void one_minus_exp(Real* y, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(one_minus_exp)(y, x, n); }
void exp_shifted(Real* y, const Real* x, Real shift, Index n) { HWY_DYNAMIC_DISPATCH(exp_shifted)(y, x, shift, n); }
void exp_difference(Real* y, const Real* a, const Real* b, Index n) {
  HWY_DYNAMIC_DISPATCH(exp_difference)(y, a, b, n);
}
void multiply_exp_difference(Real* y, const Real* x, const Real* a, const Real* b, Index n) {
  HWY_DYNAMIC_DISPATCH(multiply_exp_difference)(y, x, a, b, n);
}
Real exp_scaled_sum(Real* y, const Real* x, Real scale, Real shift, Index n) {
  return HWY_DYNAMIC_DISPATCH(exp_scaled_sum)(y, x, scale, shift, n);
}

void softmax_row(Real* y, const Real* x, Real factor, Index n) {
  if (n == 0) return;
  if (factor < 0) {
    scale(y, factor, x, n);
    softmax_row(y, y, 1, n);
    return;
  }
  const Real total = exp_scaled_sum(y, x, factor, factor * max(x, n), n);
  scale(y, 1 / total, y, n);
}

void softmax_row_backward(Real* dx, const Real* dy, const Real* y, Real factor, Index n) {
  HWY_DYNAMIC_DISPATCH(softmax_row_backward)(dx, dy, y, factor, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
