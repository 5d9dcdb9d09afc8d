#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/kernels_activation.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

HWY_INLINE V one() { return constant(1); }

/// s = sigmoid(x), and s (1 - s), without the cancellation of 1 - s: with e = e^-|x| and r = 1 / (1 + e), s is r or e
/// r, and s (1 - s) is e r^2.
struct SigmoidParts {
  V e, r, s;
  explicit HWY_INLINE SigmoidParts(V x) {
    e = exp_of_bounded(hn::Neg(hn::Abs(x)));
    r = hn::Div(one(), hn::Add(one(), e));
    s = hn::IfThenElse(hn::Ge(x, hn::Zero(D())), r, hn::Mul(e, r));
  }
  HWY_INLINE V slope() const { return hn::Mul(hn::Mul(e, r), r); }
};

HWY_INLINE V sigmoid_of(V x) { return SigmoidParts(x).s; }

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), written so that NaN stays NaN.
HWY_INLINE V softplus_of(V x) {
  const V tail = log1p_of_unit(exp_of_bounded(hn::Neg(hn::Abs(x))));
  return hn::Add(hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x), tail);
}

/// 1 where v > 0, 0 where not, NaN where v is.
HWY_INLINE V step_of(V v) {
  const V zero = hn::Zero(D());
  return hn::IfThenElse(hn::Gt(v, zero), one(), hn::IfThenZeroElse(hn::Le(v, zero), v));
}

/// Each activation: value(x), and slope(kept) of the output if `keeps_output`, else of the input.
struct Identity {
  static HWY_INLINE V value(V x) { return x; }
  static HWY_INLINE V slope(V) { return one(); }
};

struct Sigmoid {
  static HWY_INLINE V value(V x) { return sigmoid_of(x); }
  static HWY_INLINE V slope(V y) { return hn::NegMulAdd(y, y, y); }
};

struct Silu {
  static HWY_INLINE V value(V x) { return hn::Mul(x, sigmoid_of(x)); }
  static HWY_INLINE V slope(V x) {
    const SigmoidParts gate(x);
    return hn::MulAdd(x, gate.slope(), gate.s);
  }
};

/// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
struct Gelu {
  static constexpr double kTwice = 2 * 0.79788456080286535588;
  static HWY_INLINE SigmoidParts gate(V x) {
    const V cubic = hn::MulAdd(hn::Mul(x, x), constant(kTwice * 0.044715), constant(kTwice));
    return SigmoidParts(hn::Mul(x, cubic));
  }
  static HWY_INLINE V value(V x) { return hn::Mul(x, gate(x).s); }
  static HWY_INLINE V slope(V x) {
    const SigmoidParts g = gate(x);
    const V du = hn::MulAdd(hn::Mul(x, x), constant(kTwice * 3 * 0.044715), constant(kTwice));
    return hn::MulAdd(hn::Mul(x, g.slope()), du, g.s);
  }
};

struct Relu {
  static HWY_INLINE V value(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x); }
  static HWY_INLINE V slope(V y) { return step_of(y); }
};

struct Relu2 {
  static HWY_INLINE V value(V x) {
    const V r = Relu::value(x);
    return hn::Mul(r, r);
  }
  static HWY_INLINE V slope(V y) {
    const V r = hn::Sqrt(y);
    return hn::Add(r, r);
  }
};

/// With t = e^{-2|x|} - 1: tanh|x| = -t / (t + 2).
struct Tanh {
  static HWY_INLINE V value(V x) {
    const V t = expm1_of_negative(hn::Mul(constant(-2), hn::Abs(x)));
    return hn::CopySign(hn::Div(t, hn::Add(t, constant(2))), x);
  }
  static HWY_INLINE V slope(V y) { return hn::NegMulAdd(y, y, one()); }
};

struct Elu1 {
  static HWY_INLINE V value(V x) { return hn::IfThenElse(hn::Gt(x, hn::Zero(D())), hn::Add(x, one()), exp_of(x)); }
  static HWY_INLINE V slope(V y) { return hn::IfThenElse(hn::Gt(y, one()), one(), y); }
};

struct LogSigmoid {
  static HWY_INLINE V value(V x) { return hn::Neg(softplus_of(hn::Neg(x))); }
  static HWY_INLINE V slope(V y) { return hn::Neg(expm1_of_negative(y)); }
};

struct Exp {
  static HWY_INLINE V value(V x) { return exp_of(x); }
  static HWY_INLINE V slope(V y) { return y; }
};

struct Softplus {
  static HWY_INLINE V value(V x) { return softplus_of(x); }
  static HWY_INLINE V slope(V y) { return hn::Neg(expm1_of_negative(hn::Neg(y))); }
};

/// Calls fn(F()) with the type of the activation.
template <typename Fn>
HWY_INLINE void with_activation(Activation activation, Fn&& fn) {
  switch (activation) {
    case Activation::identity:
      return fn(Identity());
    case Activation::sigmoid:
      return fn(Sigmoid());
    case Activation::silu:
      return fn(Silu());
    case Activation::gelu:
      return fn(Gelu());
    case Activation::relu:
      return fn(Relu());
    case Activation::relu2:
      return fn(Relu2());
    case Activation::tanh:
      return fn(Tanh());
    case Activation::elu1:
      return fn(Elu1());
    case Activation::log_sigmoid:
      return fn(LogSigmoid());
    case Activation::exp:
      return fn(Exp());
    case Activation::softplus:
      return fn(Softplus());
  }
}

void activate(Activation activation, Real* y, const Real* x, Index n) {
  with_activation(activation, [&](auto f) HWY_ATTR { map(y, x, n, [f](V v) QUIPU_LANEWISE { return f.value(v); }); });
}

void activate_backward(Activation activation, Real* dx, const Real* dy, const Real* kept, Index n) {
  with_activation(activation, [&](auto f) HWY_ATTR {
    map(dx, dy, kept, n, [f](V g, V v) QUIPU_LANEWISE { return hn::Mul(g, f.slope(v)); });
  });
}

void gated(Activation activation, Real* y, const Real* gate, const Real* x, Index n) {
  with_activation(activation, [&](auto f) HWY_ATTR {
    map(y, gate, x, n, [f](V g, V v) QUIPU_LANEWISE { return hn::Mul(f.value(g), v); });
  });
}

void gated_backward(Activation activation, Real* dgate, Real* dx, const Real* dy, const Real* gate, const Real* x,
                    Index n) {
  const bool of_output = keeps_output(activation);
  with_activation(activation, [&](auto f) HWY_ATTR {
    for_vectors(n, [&, f](auto load, auto store, Index) QUIPU_LANEWISE {
      const V g = load(gate);
      const V dv = load(dy);
      const V value = f.value(g);
      const V slope = f.slope(of_output ? value : g);
      const V dg = hn::Mul(hn::Mul(dv, load(x)), slope);
      store(hn::Mul(dv, value), dx);
      store(dg, dgate);
    });
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(activate);
HWY_EXPORT(activate_backward);
HWY_EXPORT(gated);
HWY_EXPORT(gated_backward);

void activate(Activation activation, Real* y, const Real* x, Index n) {
  HWY_DYNAMIC_DISPATCH(activate)(activation, y, x, n);
}

void activate_backward(Activation activation, Real* dx, const Real* dy, const Real* kept, Index n) {
  HWY_DYNAMIC_DISPATCH(activate_backward)(activation, dx, dy, kept, n);
}

void gated(Activation activation, Real* y, const Real* gate, const Real* x, Index n) {
  HWY_DYNAMIC_DISPATCH(gated)(activation, y, gate, x, n);
}

void gated_backward(Activation activation, Real* dgate, Real* dx, const Real* dy, const Real* gate, const Real* x,
                    Index n) {
  HWY_DYNAMIC_DISPATCH(gated_backward)(activation, dgate, dx, dy, gate, x, n);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
