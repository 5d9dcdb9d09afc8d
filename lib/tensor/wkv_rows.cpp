#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/wkv_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/simd_inl.h"
#include "tensor/wkv_rows.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// e^(x - m) and e^(y - m) with m = max(x, y), from x - y: one of them is 1.
struct Weights {
  V x, y;
};
HWY_INLINE Weights weights_of(M x_is_larger, V smaller) {
  const V one = hn::Set(D(), 1);
  return {hn::IfThenElse(x_is_larger, one, smaller), hn::IfThenElse(x_is_larger, smaller, one)};
}
HWY_INLINE V smaller_weight(V difference) { return exp_of_bounded(hn::Neg(hn::Abs(difference))); }
HWY_INLINE M has_sign(V x) {
  return hn::MaskFromVec(hn::BitCast(D(), hn::BroadcastSignBit(hn::BitCast(hn::RebindToSigned<D>(), x))));
}
HWY_INLINE M not_negative(V x) { return hn::Ge(x, hn::Zero(D())); }

/// The offset p of a state as `base` and a whole number of decays since.
struct Offset {
  V base, decays;

  HWY_INLINE V at(V w) const { return hn::MulAdd(decays, w, base); }
};

/// One token's update of a state: returns the smaller weight.
HWY_INLINE V update(V* a, V* b, Offset* p, V w, V k, V v) {
  const V next = hn::Add(p->decays, hn::Set(D(), 1));
  const V difference = hn::Sub(hn::MulAdd(next, w, p->base), k);
  const V smaller = smaller_weight(difference);
  const M decays = not_negative(difference);
  const auto [old, fresh] = weights_of(decays, smaller);
  *a = hn::MulAdd(old, *a, hn::Mul(fresh, v));
  *b = hn::MulAdd(old, *b, fresh);
  p->base = hn::IfThenElse(decays, p->base, k);
  p->decays = hn::IfThenElseZero(decays, next);
  return smaller;
}

/// The offset rounded to one number, and the factor that makes up for the rounding.
HWY_INLINE V rounded(Offset p, V w, V* rest) {
  const V offset = p.at(w);
  *rest = exp_of(hn::MulAdd(p.decays, w, hn::Sub(p.base, offset)));
  return offset;
}

void wkv_forward(const WkvRows& r, WkvState s, Real* y) {
  HWY_ALIGN Real decays[kWkvChannels] = {};
  for (Index t = 0; t < r.tokens; ++t) {
    const Real *const k = r.k + t * r.stride, *const v = r.v + t * r.stride;
    Real* const out = y + t * r.stride;
    for_vectors(r.channels, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      V a = load(s.a), b = load(s.b);
      Offset p{load(s.p), load(decays)};
      const V w = load(r.w), key = load(k), value = load(v);
      const V difference = hn::Sub(p.at(w), hn::Add(load(r.u), key));
      const auto [old, current] = weights_of(not_negative(difference), smaller_weight(difference));
      store(hn::Div(hn::MulAdd(old, a, hn::Mul(current, value)), hn::MulAdd(old, b, current)), out);
      update(&a, &b, &p, w, key, value);
      store(a, s.a), store(b, s.b), store(p.base, s.p), store(p.decays, decays);
    });
  }
  for_vectors(r.channels, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    V rest;
    store(rounded({load(s.p), load(decays)}, load(r.w), &rest), s.p);
    store(hn::Mul(load(s.a), rest), s.a);
    store(hn::Mul(load(s.b), rest), s.b);
  });
}

void wkv_trace(const WkvRows& r, WkvState s, Real* trace, Real* rest) {
  HWY_ALIGN Real decays[kWkvChannels] = {};
  const Index n = r.channels;
  for (Index t = 0; t < r.tokens; ++t) {
    const Real *const k = r.k + t * r.stride, *const v = r.v + t * r.stride;
    Real* const to = trace + t * kWkvTrace * n;
    for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      V a = load(s.a), b = load(s.b);
      Offset p{load(s.p), load(decays)};
      const V w = load(r.w);
      store(a, to), store(b, to + n), store(p.at(w), to + 2 * n);
      const V smaller = update(&a, &b, &p, w, load(k), load(v));
      store(hn::IfThenElse(hn::Eq(p.decays, hn::Zero(D())), hn::Neg(smaller), smaller), to + 3 * n);
      store(a, s.a), store(b, s.b), store(p.base, s.p), store(p.decays, decays);
    });
  }
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    V factor;
    rounded({load(s.p), load(decays)}, load(r.w), &factor);
    store(factor, rest);
  });
}

void wkv_backward(const WkvRows& r, const Real* trace, const Real* dy, WkvState g, Real* dk, Real* dv, Real* dw,
                  Real* du) {
  const Index n = r.channels;
  for (Index t = r.tokens - 1; t >= 0; --t) {
    const Real *const k = r.k + t * r.stride, *const v = r.v + t * r.stride;
    const Real *const from = trace + t * kWkvTrace * n, *const d = dy == nullptr ? nullptr : dy + t * r.stride;
    Real *const to_k = dk + t * r.stride, *const to_v = dv + t * r.stride;
    for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
      const V a = load(from), b = load(from + n), value = load(v);
      // the output: den = old b + current,  y = (old a + current v) / den
      const V difference = hn::Sub(load(from + 2 * n), hn::Add(load(r.u), load(k)));
      const auto [old, current] = weights_of(not_negative(difference), smaller_weight(difference));
      const V inverse = hn::Div(hn::Set(D(), 1), hn::MulAdd(old, b, current));
      const V y = hn::Mul(hn::MulAdd(old, a, hn::Mul(current, value)), inverse);
      const V q = d == nullptr ? hn::Zero(D()) : hn::Mul(load(d), inverse);
      const V q_current = hn::Mul(q, current), q_old = hn::Mul(q, old);
      const V bonus = hn::Mul(q_current, hn::Sub(value, y));
      // the update: a' = kept a + fresh v, b' = kept b + fresh; the sign of what the trace holds says which is 1
      const V signed_weight = load(from + 3 * n);
      const M decays = hn::Not(has_sign(signed_weight));
      const auto [kept, fresh] = weights_of(decays, hn::Abs(signed_weight));
      const V da = load(g.a), db = load(g.b), choice = load(g.p);
      const V of_key = hn::MulAdd(fresh, hn::MulAdd(value, da, db), hn::IfThenZeroElse(decays, choice));
      const V of_decay = hn::MulAdd(kept, hn::MulAdd(a, da, hn::Mul(b, db)), hn::IfThenElseZero(decays, choice));
      store(hn::Add(bonus, of_key), to_k);
      store(hn::MulAdd(fresh, da, q_current), to_v);
      store(hn::Add(load(dw), of_decay), dw);
      store(hn::Add(load(du), bonus), du);
      store(hn::MulAdd(kept, da, q_old), g.a);
      store(hn::NegMulAdd(q_old, y, hn::Mul(kept, db)), g.b);
      store(hn::IfThenElseZero(decays, choice), g.p);
    });
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(wkv_forward);
HWY_EXPORT(wkv_trace);
HWY_EXPORT(wkv_backward);

void wkv_forward(const WkvRows& rows, WkvState state, Real* y) { HWY_DYNAMIC_DISPATCH(wkv_forward)(rows, state, y); }
void wkv_trace(const WkvRows& rows, WkvState state, Real* trace, Real* rest) {
  HWY_DYNAMIC_DISPATCH(wkv_trace)(rows, state, trace, rest);
}
void wkv_backward(const WkvRows& rows, const Real* trace, const Real* dy, WkvState gradient, Real* dk, Real* dv,
                  Real* dw, Real* du) {
  HWY_DYNAMIC_DISPATCH(wkv_backward)(rows, trace, dy, gradient, dk, dv, dw, du);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
