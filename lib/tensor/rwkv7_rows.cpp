#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/rwkv7_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include <cmath>

#include "tensor/rwkv7_rows.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// 1 / |k k_k|, bounded where that is zero.
HWY_INLINE Real inverse_length(const Rwkv7KeyRow& row, Index n) {
  constexpr Real kLeastSquare = Real(1e-24);
  const Real squares = sum_of(n, [&](auto load) QUIPU_LANEWISE {
    const V z = hn::Mul(load(row.k), load(row.k_k));
    return hn::Mul(z, z);
  });
  return 1 / std::sqrt(squares + kLeastSquare);
}

void rwkv7_keys(Real* erase, Real* write, Real* key, const Rwkv7KeyRow& row, Index n) {
  const V inverse = constant(static_cast<double>(inverse_length(row, n))), one = constant(1);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V k = load(row.k), rate = load(row.rate);
    const V kappa = hn::Mul(hn::Mul(k, load(row.k_k)), inverse);
    store(kappa, erase);
    store(hn::Mul(kappa, rate), write);
    store(hn::Mul(k, hn::MulAdd(hn::Sub(rate, one), load(row.k_a), one)), key);
  });
}

void rwkv7_keys_backward(Real* dk, Real* drate, Real* dk_k, Real* dk_a, const Real* derase, const Real* dwrite,
                         const Real* dkey, const Rwkv7KeyRow& row, Index n) {
  const Real scale = inverse_length(row, n);
  const Real along = sum_of(n, [&](auto load) QUIPU_LANEWISE {
    const V dkappa = hn::MulAdd(load(dwrite), load(row.rate), load(derase));
    return hn::Mul(hn::Mul(load(row.k), load(row.k_k)), dkappa);
  });
  const V inverse = constant(static_cast<double>(scale)), part = constant(static_cast<double>(along * scale));
  const V one = constant(1);
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V k = load(row.k), rate = load(row.rate), k_k = load(row.k_k), k_a = load(row.k_a), d = load(dkey);
    const V kappa = hn::Mul(hn::Mul(k, k_k), inverse), dw = load(dwrite);
    const V dkappa = hn::MulAdd(dw, rate, load(derase));
    const V dz = hn::Mul(inverse, hn::NegMulAdd(kappa, part, dkappa));  // of k k_k before it is brought to length 1
    const V less = hn::Sub(rate, one), along_key = hn::Mul(d, k);
    store(hn::MulAdd(d, hn::MulAdd(less, k_a, one), hn::Mul(dz, k_k)), dk);
    store(hn::MulAdd(dw, kappa, hn::Mul(along_key, k_a)), drate);
    store(hn::MulAdd(dz, k, load(dk_k)), dk_k);
    store(hn::MulAdd(along_key, less, load(dk_a)), dk_a);
  });
}

HWY_INLINE Real own_weight(const Rwkv7OutputRow& row, Index n) {
  return sum_of(n,
                [&](auto load) QUIPU_LANEWISE { return hn::Mul(hn::Mul(load(row.r), load(row.key)), load(row.r_k)); });
}

void rwkv7_output(Real* o, const Rwkv7OutputRow& row, Index n) {
  const V s = constant(static_cast<double>(own_weight(row, n)));
  for_vectors(n, [&](auto load, auto store, Index)
                     QUIPU_LANEWISE { store(hn::Mul(hn::MulAdd(s, load(row.v), load(row.y)), load(row.gate)), o); });
}

void rwkv7_output_backward(const Rwkv7OutputGradient& d, const Real* dout, const Rwkv7OutputRow& row, Index n) {
  const V s = constant(static_cast<double>(own_weight(row, n)));
  const Real through =
      sum_of(n, [&](auto load) QUIPU_LANEWISE { return hn::Mul(hn::Mul(load(dout), load(row.gate)), load(row.v)); });
  const V ds = constant(static_cast<double>(through));
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V o = load(dout), v = load(row.v), r = load(row.r), key = load(row.key), r_k = load(row.r_k);
    const V dy = hn::Mul(o, load(row.gate)), weighed = hn::Mul(ds, r_k);
    store(hn::Mul(o, hn::MulAdd(s, v, load(row.y))), d.gate);
    store(dy, d.y);
    store(hn::Mul(s, dy), d.v);
    store(hn::Mul(weighed, key), d.r);
    store(hn::Mul(weighed, r), d.key);
    store(hn::MulAdd(ds, hn::Mul(r, key), load(d.r_k)), d.r_k);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(rwkv7_keys);
HWY_EXPORT(rwkv7_keys_backward);
HWY_EXPORT(rwkv7_output);
HWY_EXPORT(rwkv7_output_backward);

void rwkv7_keys(Real* erase, Real* write, Real* key, const Rwkv7KeyRow& row, Index n) {
  HWY_DYNAMIC_DISPATCH(rwkv7_keys)(erase, write, key, row, n);
}
void rwkv7_keys_backward(Real* dk, Real* drate, Real* dk_k, Real* dk_a, const Real* derase, const Real* dwrite,
                         const Real* dkey, const Rwkv7KeyRow& row, Index n) {
  HWY_DYNAMIC_DISPATCH(rwkv7_keys_backward)(dk, drate, dk_k, dk_a, derase, dwrite, dkey, row, n);
}
void rwkv7_output(Real* o, const Rwkv7OutputRow& row, Index n) { HWY_DYNAMIC_DISPATCH(rwkv7_output)(o, row, n); }
void rwkv7_output_backward(const Rwkv7OutputGradient& d, const Real* dout, const Rwkv7OutputRow& row, Index n) {
  HWY_DYNAMIC_DISPATCH(rwkv7_output_backward)(d, dout, row, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
