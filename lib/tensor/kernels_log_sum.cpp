#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_log_sum.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/kernels.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

// With d = s - z and u = e^-|d|:  z' = max(z, s) + log(1 + u), and the shares e^(z - z') and e^(s - z') are 1 / (1 + u)
// and u / (1 + u), the larger for the larger. Neither is made from z', whose last digits would be lost.
void log_sum_step(Real* z, Real* low, Real* g, Real* w, const Real* s, Index n) {
  const V one = constant(1), zero = hn::Zero(D()), nothing = constant(kNoLogSum);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V before = load(z), rest = load(low), logit = load(s);
    const M empty = hn::Le(before, nothing);
    const V d = hn::Sub(hn::Sub(logit, before), rest);
    const M rising = hn::Gt(d, zero);
    const V u = exp_of_bounded(hn::Neg(hn::Abs(d)));
    const V added = log1p_of_unit(u);
    const V larger = hn::Div(one, hn::Add(one, u));
    const V base = hn::IfThenElse(rising, logit, before);
    const V more = hn::Add(added, hn::IfThenZeroElse(rising, rest));
    const V total = hn::Add(base, more);
    const V falls = hn::Neg(hn::Add(added, hn::IfThenElseZero(rising, d)));
    store(hn::IfThenElse(empty, logit, total), z);
    store(hn::IfThenZeroElse(empty, hn::Sub(more, hn::Sub(total, base))), low);
    store(hn::IfThenZeroElse(empty, falls), g);
    store(hn::IfThenElse(empty, one, hn::IfThenElse(rising, larger, hn::Mul(u, larger))), w);
  });
}

// dw = w (ds - dz'),  dg = dz - dz',  and dz' = w ds + (1 - w) dz. A first logit has w = 1 and g = 0, a constant.
void log_sum_step_backward(Real* ds, Real* dz, const Real* dg, const Real* dw, const Real* g, const Real* w, Index n) {
  const V one = constant(1), zero = hn::Zero(D());
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V weight = load(w);
    const M first = hn::And(hn::Eq(weight, one), hn::Eq(load(g), zero));
    const V through_g = hn::IfThenZeroElse(first, load(dg));
    const V through_w = hn::Mul(load(dw), weight);
    const V total = hn::Sub(hn::Sub(load(dz), through_w), through_g);
    store(hn::MulAdd(total, weight, through_w), ds);
    store(hn::MulAdd(total, hn::Sub(one, weight), through_g), dz);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(log_sum_step);
HWY_EXPORT(log_sum_step_backward);

void log_sum_step(Real* z, Real* low, Real* g, Real* w, const Real* s, Index n) {
  HWY_DYNAMIC_DISPATCH(log_sum_step)(z, low, g, w, s, n);
}
void log_sum_step_backward(Real* ds, Real* dz, const Real* dg, const Real* dw, const Real* g, const Real* w, Index n) {
  HWY_DYNAMIC_DISPATCH(log_sum_step_backward)(ds, dz, dg, dw, g, w, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
