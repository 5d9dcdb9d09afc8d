// What the SIMD kernels share: loops with tails, and elementary functions on vectors. Included once a target, inside
// hwy/foreach_target.h; every function here is pure in its lane, so that an element's result does not depend on its
// place in the array.
#if defined(QUIPU_TENSOR_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_TENSOR_SIMD_INL_H_
#undef QUIPU_TENSOR_SIMD_INL_H_
#else
#define QUIPU_TENSOR_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>
#include <limits>

#include "base/real.h"

/// Marks a lambda over vectors: compiled for the target, and always inlined into its loop.
#ifndef QUIPU_LANEWISE
#define QUIPU_LANEWISE HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<Real>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

HWY_INLINE Index lanes() { return static_cast<Index>(hn::Lanes(D())); }
HWY_INLINE V constant(double value) { return hn::Set(D(), static_cast<Real>(value)); }

/// The first n < lanes() elements, zeros behind them; nothing past the end is touched.
HWY_INLINE V load_first(const Real* x, Index n) {
  const D d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, x);
#else
  HWY_ALIGN Real buffer[HWY_MAX_BYTES / sizeof(Real)] = {};
  std::memcpy(buffer, x, static_cast<size_t>(n) * sizeof(Real));
  return hn::Load(d, buffer);
#endif
}

HWY_INLINE void store_first(V v, Real* y, Index n) {
  const D d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, y);
#else
  HWY_ALIGN Real buffer[HWY_MAX_BYTES / sizeof(Real)];
  hn::Store(v, d, buffer);
  std::memcpy(y, buffer, static_cast<size_t>(n) * sizeof(Real));
#endif
}

/// The first n lanes of v (all of them where n >= lanes()), zeros behind.
HWY_INLINE V keep_first(V v, Index n) { return hn::IfThenElseZero(hn::FirstN(D(), static_cast<size_t>(n)), v); }

/// Calls fn(load, store, i, n) for every vector of an array of n elements: `load(p)` and `store(v, p)` move the vector
/// at p + i; `count` is the number of lanes that count.
template <typename F>
HWY_INLINE void for_vectors(Index n, F&& fn) {
  const D d;
  const Index width = lanes();
  Index i = 0;
  for (; i + width <= n; i += width) {
    fn([d, i](const Real* p) QUIPU_LANEWISE { return hn::LoadU(d, p + i); },
       [d, i](V v, Real* p) QUIPU_LANEWISE { hn::StoreU(v, d, p + i); }, width);
  }
  if (const Index rest = n - i; rest > 0) {
    fn([i, rest](const Real* p) QUIPU_LANEWISE { return load_first(p + i, rest); },
       [i, rest](V v, Real* p) QUIPU_LANEWISE { store_first(v, p + i, rest); }, rest);
  }
}

/// y = f(x), elementwise.
template <typename F>
HWY_INLINE void map(Real* y, const Real* x, Index n, F&& f) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE { store(f(load(x)), y); });
}

template <typename F>
HWY_INLINE void map(Real* y, const Real* a, const Real* b, Index n, F&& f) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE { store(f(load(a), load(b)), y); });
}

template <typename F>
HWY_INLINE void map(Real* y, const Real* a, const Real* b, const Real* c, Index n, F&& f) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE { store(f(load(a), load(b), load(c)), y); });
}

/// The sum of f(i, load) over all vectors, in four partial sums combined in a fixed order. `f(load)` yields a vector;
/// lanes past the end are left out.
template <typename F>
HWY_INLINE Real sum_of(Index n, F&& f) {
  const D d;
  const Index width = lanes();
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto at = [&](Index i) QUIPU_LANEWISE {
    return f([d, i](const Real* p) QUIPU_LANEWISE { return hn::LoadU(d, p + i); });
  };
  Index i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    s0 = hn::Add(s0, at(i));
    s1 = hn::Add(s1, at(i + width));
    s2 = hn::Add(s2, at(i + 2 * width));
    s3 = hn::Add(s3, at(i + 3 * width));
  }
  for (; i + width <= n; i += width) s0 = hn::Add(s0, at(i));
  if (const Index rest = n - i; rest > 0) {
    const V last = f([i, rest](const Real* p) QUIPU_LANEWISE { return load_first(p + i, rest); });
    s1 = hn::Add(s1, keep_first(last, rest));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

HWY_INLINE M is_nan(V x) { return hn::IsNaN(x); }

/// Constants of 2 e^r = 2 + 2r + r^2 q(r) on |r| <= ln(2)/2, for float (error 1.0e-8) and double (1.7e-17). The factor
/// of 2 leaves 2^(n-1) to multiply with, which is a normal number also where 2^n would overflow.
template <typename T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr double kMagic = 0x1.8p23 + 126;  // adding it rounds to an integer; 126: the exponent's bias less one
  static constexpr double kLn2High = 0.693145751953125;
  static constexpr double kLn2Low = 1.428606765330187e-6;
  static constexpr double kLowest = -86.98;  // below, the result is 0 (it would be under 2^-125)
  static constexpr double kHighest = 89;     // from here on, infinity
  static constexpr double kQ[] = {0.0027852426932664887, 0.016726405943151709, 0.083333108875371878,
                                  0.33333153691987953, 1};
};

template <>
struct ExpConstants<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr double kMagic = 0x1.8p52 + 1022;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLowest = -708.0;
  static constexpr double kHighest = 710;
  static constexpr double kQ[] = {5.0200848314010133575e-8, 5.5240277439467991138e-7,  5.5114536757368385745e-6,
                                  4.9603042380435455302e-5, 0.00039682539726211937497, 0.0027777777834563586615,
                                  0.016666666666660102693,  0.083333333333247983032,   0.33333333333333334912,
                                  1.0000000000000002052};
};

/// x = n ln(2) + r: returns q(r), and sets r and 2^(n-1). Meaningless for x outside [kLowest, kHighest].
HWY_INLINE V exp_parts(V x, V* r, V* half_scale) {
  using C = ExpConstants<Real>;
  const D d;
  const V magic = constant(C::kMagic);
  const V shifted = hn::MulAdd(x, constant(1.44269504088896340736), magic);
  *half_scale = hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(hn::RebindToUnsigned<D>(), shifted)));
  const V n = hn::Sub(shifted, magic);
  *r = hn::NegMulAdd(n, constant(C::kLn2Low), hn::NegMulAdd(n, constant(C::kLn2High), x));
  V q = constant(C::kQ[0]);
  for (size_t i = 1; i < sizeof(C::kQ) / sizeof(C::kQ[0]); ++i) q = hn::MulAdd(q, *r, constant(C::kQ[i]));
  return q;
}

/// e^x for x <= kHighest (or NaN), to 1 unit in the last place; 0 below kLowest.
HWY_INLINE V exp_of_bounded(V x) {
  using C = ExpConstants<Real>;
  V r, half_scale;
  const V q = exp_parts(x, &r, &half_scale);
  const V twice = hn::MulAdd(r, hn::MulAdd(r, q, constant(2)), constant(2));
  return hn::IfThenZeroElse(hn::Lt(x, constant(C::kLowest)), hn::Mul(twice, half_scale));
}

/// e^x for any x: NaN for NaN, infinity on overflow.
HWY_INLINE V exp_of(V x) {
  const V highest = constant(ExpConstants<Real>::kHighest);
  return exp_of_bounded(hn::IfThenElse(hn::Gt(x, highest), highest, x));
}

/// e^x - 1 for x <= 0, without cancellation near 0.
HWY_INLINE V expm1_of_negative(V x) {
  using C = ExpConstants<Real>;
  V r, half_scale;
  const V q = exp_parts(x, &r, &half_scale);
  const V scale = hn::Add(half_scale, half_scale);
  const V twice = hn::MulAdd(hn::Mul(r, r), q, hn::Add(r, r));
  const V y = hn::MulAdd(twice, half_scale, hn::Sub(scale, constant(1)));
  return hn::IfThenElse(hn::Lt(x, constant(C::kLowest)), constant(-1), y);
}

/// log(1 + u) for 0 <= u <= 1: 2 atanh(u / (2 + u)), above sqrt(2) - 1 as log(2) + log((1 + u) / 2).
HWY_INLINE V log1p_of_unit(V u) {
  const M large = hn::Gt(u, constant(0.41421356237309505));
  const V top = hn::IfThenElse(large, hn::Sub(u, constant(1)), u);
  const V bottom = hn::Add(u, hn::IfThenElse(large, constant(3), constant(2)));
  const V s = hn::Div(top, bottom);
  const V s2 = hn::Mul(s, s);
  constexpr int kTerms = sizeof(Real) == 4 ? 5 : 11;
  V series = constant(2.0 / (2 * kTerms - 1));
  for (int k = kTerms - 1; k > 0; --k) series = hn::MulAdd(series, s2, constant(2.0 / (2 * k - 1)));
  const V offset = hn::IfThenElseZero(large, constant(0.69314718055994530942));
  return hn::MulAdd(series, s, offset);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QUIPU_TENSOR_SIMD_INL_H_
