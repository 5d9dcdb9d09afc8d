#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/kernels.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

void fill(Real* y, Real value, Index n) {
  const V v = hn::Set(D(), value);
  for_vectors(n, [&](auto, auto store, Index) QUIPU_LANEWISE { store(v, y); });
}

void add(Real* y, const Real* a, const Real* b, Index n) {
  map(y, a, b, n, [](V u, V v) QUIPU_LANEWISE { return hn::Add(u, v); });
}

void axpy(Real* y, Real a, const Real* x, Index n) {
  const V factor = hn::Set(D(), a);
  map(y, y, x, n, [factor](V u, V v) QUIPU_LANEWISE { return hn::MulAdd(factor, v, u); });
}

void scale(Real* y, Real a, const Real* x, Index n) {
  const V factor = hn::Set(D(), a);
  map(y, x, n, [factor](V v) QUIPU_LANEWISE { return hn::Mul(factor, v); });
}

void multiply(Real* y, const Real* a, const Real* b, Index n) {
  map(y, a, b, n, [](V u, V v) QUIPU_LANEWISE { return hn::Mul(u, v); });
}

void multiply_add(Real* y, const Real* a, const Real* b, Index n) {
  map(y, y, a, b, n, [](V s, V u, V v) QUIPU_LANEWISE { return hn::MulAdd(u, v, s); });
}

void rotate(Real* ya, Real* yb, const Real* a, const Real* b, const Real* cosine, const Real* sine, Real sign,
            Index n) {
  const V direction = hn::Set(D(), sign);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V c = load(cosine);
    const V s = hn::Mul(direction, load(sine));
    const V u = load(a);
    const V v = load(b);
    store(hn::NegMulAdd(v, s, hn::Mul(u, c)), ya);
    store(hn::MulAdd(u, s, hn::Mul(v, c)), yb);
  });
}

Real dot(const Real* a, const Real* b, Index n) {
  return sum_of(n, [a, b](auto load) QUIPU_LANEWISE { return hn::Mul(load(a), load(b)); });
}

Real sum(const Real* x, Index n) {
  return sum_of(n, [x](auto load) QUIPU_LANEWISE { return load(x); });
}

Real sum_of_squares(const Real* x, Index n) {
  return sum_of(n, [x](auto load) QUIPU_LANEWISE {
    const V v = load(x);
    return hn::Mul(v, v);
  });
}

Real max(const Real* x, Index n) {
  V largest = hn::Set(D(), x[0]);
  M nan = is_nan(largest);
  for_vectors(n, [&](auto load, auto, Index count) QUIPU_LANEWISE {
    V v = load(x);
    if (count < lanes()) v = hn::IfThenElse(hn::FirstN(D(), static_cast<size_t>(count)), v, hn::Set(D(), x[0]));
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
    nan = hn::Or(nan, is_nan(v));
  });
  if (!hn::AllFalse(D(), nan)) return std::numeric_limits<Real>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(D(), largest));
}

bool all_finite(const Real* x, Index n) {
  const V zero = hn::Zero(D());
  return sum_of(n, [x, zero](auto load) QUIPU_LANEWISE { return hn::Mul(load(x), zero); }) == 0;
}

const char* simd_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(fill);
HWY_EXPORT(add);
HWY_EXPORT(axpy);
HWY_EXPORT(scale);
HWY_EXPORT(multiply);
HWY_EXPORT(multiply_add);
HWY_EXPORT(rotate);
HWY_EXPORT(dot);
HWY_EXPORT(sum);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(max);
HWY_EXPORT(all_finite);
HWY_EXPORT(simd_target);

void fill(Real* y, Real value, Index n) { HWY_DYNAMIC_DISPATCH(fill)(y, value, n); }
void add_into(Real* y, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(add)(y, y, x, n); }
void add(Real* y, const Real* a, const Real* b, Index n) { HWY_DYNAMIC_DISPATCH(add)(y, a, b, n); }
void axpy(Real* y, Real a, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(axpy)(y, a, x, n); }
void scale(Real* y, Real a, const Real* x, Index n) { HWY_DYNAMIC_DISPATCH(scale)(y, a, x, n); }
void multiply(Real* y, const Real* a, const Real* b, Index n) { HWY_DYNAMIC_DISPATCH(multiply)(y, a, b, n); }
void multiply_add(Real* y, const Real* a, const Real* b, Index n) { HWY_DYNAMIC_DISPATCH(multiply_add)(y, a, b, n); }
void rotate(Real* ya, Real* yb, const Real* a, const Real* b, const Real* cosine, const Real* sine, Real sign,
            Index n) {
  HWY_DYNAMIC_DISPATCH(rotate)(ya, yb, a, b, cosine, sine, sign, n);
}
Real dot(const Real* a, const Real* b, Index n) { return HWY_DYNAMIC_DISPATCH(dot)(a, b, n); }
Real sum(const Real* x, Index n) { return HWY_DYNAMIC_DISPATCH(sum)(x, n); }
Real sum_of_squares(const Real* x, Index n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, n); }
Real max(const Real* x, Index n) { return HWY_DYNAMIC_DISPATCH(max)(x, n); }
const char* simd_target() { return HWY_DYNAMIC_DISPATCH(simd_target)(); }
bool all_finite(const Real* x, Index n) { return HWY_DYNAMIC_DISPATCH(all_finite)(x, n); }

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
