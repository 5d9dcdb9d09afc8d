#include "grad/ops_pointwise.h"

#include <cmath>

#include "base/blocks.h"
#include "grad/reuse.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// fn(offset, count) over blocks of n elements.
template <typename F>
void for_elements(Index n, F&& fn) {
  for_blocks(n, kElementBlock, [&](Index begin, Index end) { fn(begin, end - begin); });
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor y(a.shape());
  for_elements(y.count(), [&](Index i, Index n) { kernels::multiply(y.data() + i, a.data() + i, b.data() + i, n); });
  return y;
}

void scale_into(const Tensor& y, Real c, const Tensor& x) {
  for_elements(y.count(), [&](Index i, Index n) { kernels::scale(y.data() + i, c, x.data() + i, n); });
}

/// Elements are dropped by 32 bits each of the generator: of index 2i and 2i+1 by the halves of its value i.
struct DropoutMask {
  Rng rng;
  std::uint64_t dropped_below;
  Real kept_scale;

  DropoutMask(double p, const Rng& generator)
      : rng(generator), dropped_below(static_cast<std::uint64_t>(std::llround(p * 0x1p32))) {
    kept_scale = static_cast<Real>(0x1p32 / (0x1p32 - static_cast<double>(dropped_below)));
  }

  Real factor(std::uint64_t half) const { return half < dropped_below ? Real{0} : kept_scale; }

  /// y = mask x; `begin` is even.
  void apply(Real* y, const Real* x, Index begin, Index n) const {
    for (Index i = 0; i < n; i += 2) {
      const std::uint64_t bits = rng.bits(static_cast<std::uint64_t>(begin + i) / 2);
      y[i] = x[i] * factor(bits & 0xffffffffu);
      if (i + 1 < n) y[i + 1] = x[i + 1] * factor(bits >> 32);
    }
  }

  void apply(const Tensor& y, const Tensor& x) const {
    static_assert(kElementBlock % 2 == 0);
    for_elements(y.count(), [&](Index i, Index n) { apply(y.data() + i, x.data() + i, i, n); });
  }
};

}  // namespace

Var add(Tape& tape, const Var& a, const Var& b) {
  const OpScope op_scope("add");
  require_shape("add", b.shape(), a.shape());
  Tensor y(a.shape());
  for_elements(y.count(),
               [&](Index i, Index n) { kernels::add(y.data() + i, a.value().data() + i, b.value().data() + i, n); });
  return tape.record(std::move(y), {&a, &b}, [da = a.gradient(), db = b.gradient()](Tensor dy) {
    add_gradient(da, dy);
    add_gradient(db, std::move(dy));
  });
}

Var multiply(Tape& tape, const Var& a, const Var& b) {
  const OpScope op_scope("product");
  require_shape("multiply", b.shape(), a.shape());
  Tensor y = product(a.value(), b.value());
  const Tensor kept_a = b.wants_gradient() ? a.value() : Tensor();
  const Tensor kept_b = a.wants_gradient() ? b.value() : Tensor();
  return tape.record(std::move(y), {&a, &b}, [=, da = a.gradient(), db = b.gradient()](const Tensor& dy) {
    if (da) da->add(product(dy, kept_b));
    if (db) db->add(product(dy, kept_a));
  });
}

Var scale(Tape& tape, const Var& x, Real c) {
  const OpScope op_scope("scale");
  Tensor y(x.shape());
  scale_into(y, c, x.value());
  return tape.record(std::move(y), {&x}, [slot = x.gradient(), c](const Tensor& dy) {
    Tensor dx = reuse_or_new(dy);
    scale_into(dx, c, dy);
    slot->add(std::move(dx));
  });
}

Var activate(Tape& tape, const Var& x, Activation activation) {
  const OpScope op_scope("activation");
  if (activation == Activation::identity) return x;
  Tensor y(x.shape());
  for_elements(y.count(),
               [&](Index i, Index n) { kernels::activate(activation, y.data() + i, x.value().data() + i, n); });
  const Tensor kept = keeps_output(activation) ? y : x.value();
  return tape.record(std::move(y), {&x}, [slot = x.gradient(), kept, activation](const Tensor& dy) {
    Tensor dx = reuse_or_new(dy);
    for_elements(dx.count(), [&](Index i, Index n) {
      kernels::activate_backward(activation, dx.data() + i, dy.data() + i, kept.data() + i, n);
    });
    slot->add(std::move(dx));
  });
}

Var clamp(Tape& tape, const Var& x, Real low, Real high) {
  const OpScope op_scope("clamp");
  Tensor y(x.shape());
  for_elements(y.count(), [&](Index i, Index n) { clamp_into(y.data() + i, x.value().data() + i, low, high, n); });
  return tape.record(y, {&x}, [slot = x.gradient(), kept = x.value(), low, high](const Tensor& dy) {
    Tensor dx = reuse_or_new(dy);
    for_elements(dx.count(), [&](Index begin, Index n) {
      for (Index i = begin; i < begin + n; ++i) {
        const Real value = kept.data()[i];
        dx.data()[i] = value < low || value > high ? 0 : dy.data()[i];
      }
    });
    slot->add(std::move(dx));
  });
}

Var gated(Tape& tape, const Var& gate, const Var& x, Activation activation) {
  const OpScope op_scope("gated activation");
  require_shape("gated", gate.shape(), x.shape());
  Tensor y(x.shape());
  const Tensor g = gate.value();
  const Tensor v = x.value();
  for_elements(y.count(),
               [&](Index i, Index n) { kernels::gated(activation, y.data() + i, g.data() + i, v.data() + i, n); });
  return tape.record(std::move(y), {&gate, &x},
                     [g, v, activation, dgate = gate.gradient(), dvalue = x.gradient()](const Tensor& dy) {
                       Tensor dx = reuse_or_new(dy);
                       Tensor dg(dy.shape());
                       for_elements(dy.count(), [&](Index i, Index n) {
                         kernels::gated_backward(activation, dg.data() + i, dx.data() + i, dy.data() + i, g.data() + i,
                                                 v.data() + i, n);
                       });
                       add_gradient(dgate, std::move(dg));
                       add_gradient(dvalue, std::move(dx));
                     });
}

Var dropout(Tape& tape, const Var& x, double p, const Rng& rng) {
  const OpScope op_scope("dropout");
  if (!(p >= 0 && p < 1)) throw UsageError("dropout: the probability is {}; it must be at least 0 and below 1", p);
  if (p == 0) return x;
  const DropoutMask mask(p, rng);
  Tensor y(x.shape());
  mask.apply(y, x.value());
  return tape.record(std::move(y), {&x}, [slot = x.gradient(), mask](const Tensor& dy) {
    Tensor dx = reuse_or_new(dy);
    mask.apply(dx, dy);
    slot->add(std::move(dx));
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
