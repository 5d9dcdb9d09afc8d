#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/bounded_gate.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/bounded_gate.h"
#include "tensor/simd_inl.h"
// last: it needs what the above includes
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

/// With e = e^{-|f|}: sigmoid(|f|) = 1 / (1 + e) and sigmoid(-|f|) = e / (1 + e); and
/// alpha (1 + e) = 1 + beta e for f >= 0, beta + e below, sums of what is positive.
struct BoundedGate {
  V e, numerator, large, small;
  M positive;

  HWY_INLINE BoundedGate(V f, V beta) {
    const V one = constant(1);
    positive = hn::Ge(f, hn::Zero(D()));
    e = exp_of_bounded(hn::Neg(hn::Abs(f)));
    numerator = hn::IfThenElse(positive, hn::MulAdd(beta, e, one), hn::Add(beta, e));
    large = hn::Div(one, hn::Add(one, e));
    small = hn::Mul(e, large);
  }
  HWY_INLINE V open() const { return hn::IfThenElse(positive, large, small); }    ///< sigmoid(f)
  HWY_INLINE V closed() const { return hn::IfThenElse(positive, small, large); }  ///< sigmoid(-f)
};

void bounded_gate(Real* g, Real* k, const Real* f, const Real* beta, Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V x = load(f), bound = load(beta);
    const BoundedGate gate(x, bound);
    const V above = log1p_of_unit(hn::Mul(bound, gate.e));
    // Without a bound log e = f, whatever became of e; lanes that are not used must not trouble the logarithm.
    const M free = hn::Eq(bound, hn::Zero(D()));
    const V below = hn::IfThenElse(free, x, hn::Log(D(), hn::IfThenElse(free, constant(1), gate.numerator)));
    store(hn::Sub(hn::IfThenElse(gate.positive, above, below), log1p_of_unit(gate.e)), g);
    store(hn::Mul(hn::Sub(constant(1), bound), gate.closed()), k);
  });
}

void bounded_gate_backward(Real* df, Real* dbeta, const Real* dg, const Real* dk, const Real* f, const Real* beta,
                           Index n) {
  for_vectors(n, [&](auto load, auto store, Index) QUIPU_LANEWISE {
    const V bound = load(beta), log_gradient = load(dg), key_gradient = load(dk);
    const BoundedGate gate(load(f), bound);
    const M free = hn::Eq(bound, hn::Zero(D()));
    const V one = constant(1);
    // sigmoid(f) / alpha, 1 for f < 0 without a bound; and sigmoid(-f) / alpha.
    const V inverse = hn::Div(one, hn::IfThenElse(hn::AndNot(gate.positive, free), one, gate.numerator));
    const V open = hn::IfThenElse(gate.positive, inverse, hn::IfThenElse(free, one, hn::Mul(gate.e, inverse)));
    const V closed = hn::Mul(hn::IfThenElse(gate.positive, gate.e, one), inverse);
    const V slope =
        hn::Mul(hn::Sub(one, bound), gate.closed());  // k; dk/df = -k sigmoid(f), dg/df = k sigmoid(f)/alpha
    store(hn::Mul(slope, hn::Sub(hn::Mul(log_gradient, open), hn::Mul(key_gradient, gate.open()))), df);
    store(hn::IfThenZeroElse(free, hn::Sub(hn::Mul(log_gradient, closed), hn::Mul(key_gradient, gate.closed()))),
          dbeta);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(bounded_gate);
HWY_EXPORT(bounded_gate_backward);

void bounded_gate(Real* g, Real* k, const Real* f, const Real* beta, Index n) {
  HWY_DYNAMIC_DISPATCH(bounded_gate)(g, k, f, beta, n);
}

void bounded_gate_backward(Real* df, Real* dbeta, const Real* dg, const Real* dk, const Real* f, const Real* beta,
                           Index n) {
  HWY_DYNAMIC_DISPATCH(bounded_gate_backward)(df, dbeta, dg, dk, f, beta, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
