#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/norm_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/norm_rows.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// Calls fn(w) where w(load) is the vector of weights at the place of `load`: ones where there are none.
template <typename Fn>
HWY_INLINE auto with_weight(const Real* weight, Fn&& fn) {
  if (weight == nullptr) return fn([](auto) QUIPU_LANEWISE { return constant(1); });
  return fn([weight](auto load) QUIPU_LANEWISE { return load(weight); });
}

RowMoments row_moments(const Real* x, Index n) {
  const Real mean = sum_of(n, [x](auto load) QUIPU_LANEWISE { return load(x); }) / static_cast<Real>(n);
  const V m = hn::Set(D(), mean);
  const Real squares = sum_of(n, [x, m](auto load) QUIPU_LANEWISE {
    const V c = hn::Sub(load(x), m);
    return hn::Mul(c, c);
  });
  return {mean, squares / static_cast<Real>(n)};
}

void normalize_row(Real* y, const Real* x, RowScale by, const Real* weight, const Real* bias, Index n) {
  const V mean = hn::Set(D(), by.mean);
  const V inverse = hn::Set(D(), by.inverse);
  with_weight(weight, [&](auto w) HWY_ATTR {
    for_vectors(n, [&, w](auto load, auto store, Index) QUIPU_LANEWISE {
      const V scaled = hn::Mul(hn::Mul(hn::Sub(load(x), mean), inverse), w(load));
      store(bias == nullptr ? scaled : hn::Add(scaled, load(bias)), y);
    });
  });
}

RowSums norm_row_sums(const Real* dy, const Real* x, RowScale by, const Real* weight, Index n) {
  const V mean = hn::Set(D(), by.mean);
  const V inverse = hn::Set(D(), by.inverse);
  return with_weight(weight, [&](auto w) HWY_ATTR {
    const Real plain = sum_of(n, [&, w](auto load) QUIPU_LANEWISE { return hn::Mul(load(dy), w(load)); });
    const Real against = sum_of(n, [&, w](auto load) QUIPU_LANEWISE {
      return hn::Mul(hn::Mul(load(dy), w(load)), hn::Mul(hn::Sub(load(x), mean), inverse));
    });
    return RowSums{plain, against};
  });
}

void norm_row_backward(Real* dx, const Real* dy, const Real* x, RowScale by, const Real* weight, RowSums less,
                       Index n) {
  const V mean = hn::Set(D(), by.mean);
  const V inverse = hn::Set(D(), by.inverse);
  const V plain = hn::Set(D(), less.plain);
  const V against = hn::Set(D(), less.against);
  with_weight(weight, [&](auto w) HWY_ATTR {
    for_vectors(n, [&, w](auto load, auto store, Index) QUIPU_LANEWISE {
      const V normal = hn::Mul(hn::Sub(load(x), mean), inverse);
      const V rest = hn::NegMulAdd(normal, against, hn::Sub(hn::Mul(load(dy), w(load)), plain));
      store(hn::Mul(inverse, rest), dx);
    });
  });
}

void norm_row_weights(Real* dweight, Real* dbias, const Real* dy, const Real* x, RowScale by, Index n) {
  const V mean = hn::Set(D(), by.mean);
  const V inverse = hn::Set(D(), by.inverse);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V normal = hn::Mul(hn::Sub(load(x), mean), inverse);
    store(hn::MulAdd(load(dy), normal, load(dweight)), dweight);
    if (dbias != nullptr) store(hn::Add(load(dbias), load(dy)), dbias);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(row_moments);
HWY_EXPORT(normalize_row);
HWY_EXPORT(norm_row_sums);
HWY_EXPORT(norm_row_backward);
HWY_EXPORT(norm_row_weights);

RowMoments row_moments(const Real* x, Index n) { return HWY_DYNAMIC_DISPATCH(row_moments)(x, n); }

void normalize_row(Real* y, const Real* x, RowScale by, const Real* weight, const Real* bias, Index n) {
  HWY_DYNAMIC_DISPATCH(normalize_row)(y, x, by, weight, bias, n);
}

RowSums norm_row_sums(const Real* dy, const Real* x, RowScale by, const Real* weight, Index n) {
  return HWY_DYNAMIC_DISPATCH(norm_row_sums)(dy, x, by, weight, n);
}

void norm_row_backward(Real* dx, const Real* dy, const Real* x, RowScale by, const Real* weight, RowSums less,
                       Index n) {
  HWY_DYNAMIC_DISPATCH(norm_row_backward)(dx, dy, x, by, weight, less, n);
}

void norm_row_weights(Real* dweight, Real* dbias, const Real* dy, const Real* x, RowScale by, Index n) {
  HWY_DYNAMIC_DISPATCH(norm_row_weights)(dweight, dbias, dy, x, by, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
