#include "grad/ops_rwkv7.h"

#include <algorithm>

#include "base/blocks.h"
#include "grad/ops_linear.h"
#include "tensor/activation.h"
#include "tensor/blend.h"
#include "tensor/kernels.h"
#include "tensor/rwkv7_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kTokenBlock = 64;

/// Calls fn(at, channel) for all heads of all tokens of x [B,T,H,N]: the offsets of the head's first number in x and in
/// a weight; in parallel over blocks of tokens.
template <typename F>
void for_heads(const Shape& shape, F&& fn) {
  const Index tokens = shape[0] * shape[1], width = shape[3], dim = shape[2] * width;
  for_blocks(tokens, kTokenBlock, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t)
      for (Index channel = 0; channel < dim; channel += width) fn(t * dim + channel, channel);
  });
}

/// Partial sums over a block of tokens each, of weights of `dim` numbers.
class WeightSums {
 public:
  WeightSums(const Shape& shape, Index dim)
      : dim_(dim), parts_(Tensor::zeros({(shape[0] * shape[1] + kTokenBlock - 1) / kTokenBlock, dim})) {}

  /// Where what stands at offset `at` of a [B,T,..] tensor adds to.
  Real* row(Index at) const { return parts_.data() + at / dim_ / kTokenBlock * dim_ + at % dim_; }
  Tensor sum(const Shape& shape) const {
    Tensor total = Tensor::zeros(shape);
    add_column_sums(total.data(), parts_.matrix());
    return total;
  }

 private:
  Index dim_;
  Tensor parts_;
};

Tensor defined_or_zero(const Tensor& x, const Shape& shape) { return x.defined() ? x : Tensor::zeros(shape); }

}  // namespace

Rwkv7Keys rwkv7_keys(Tape& tape, const Var& k, const Var& rate, const Var& k_k, const Var& k_a) {
  const OpScope op_scope("rwkv7 keys");
  const Shape& shape = k.shape();
  const Index width = shape[3], dim = shape[2] * width;
  require_shape("RWKV-7's keys: rate", rate.shape(), shape);
  if (k_k.value().count() != dim || k_a.value().count() != dim)
    throw ShapeError("RWKV-7's keys: {} channels, weights of {} and {}", dim, k_k.value().count(), k_a.value().count());
  const Tensor erase(shape), write(shape), key(shape);
  const auto row = [ks = k.value(), rates = rate.value(), kk = k_k.value(), ka = k_a.value()](Index at, Index channel) {
    return kernels::Rwkv7KeyRow{ks.data() + at, rates.data() + at, kk.data() + channel, ka.data() + channel};
  };
  for_heads(shape, [&](Index at, Index channel) {
    kernels::rwkv7_keys(erase.data() + at, write.data() + at, key.data() + at, row(at, channel), width);
  });
  auto out = tape.record_all(
      {erase, write, key}, {&k, &rate, &k_k, &k_a},
      [row, shape, width, dim, dk = k.gradient(), drate = rate.gradient(), dk_k = k_k.gradient(), dk_a = k_a.gradient(),
       kk_shape = k_k.shape(), ka_shape = k_a.shape()](std::span<Tensor> dout) {
        const Tensor derase = defined_or_zero(dout[0], shape), dwrite = defined_or_zero(dout[1], shape);
        const Tensor dkey = defined_or_zero(dout[2], shape), gk(shape), grate(shape);
        const WeightSums kk(shape, dim), ka(shape, dim);
        for_heads(shape, [&](Index at, Index channel) {
          kernels::rwkv7_keys_backward(gk.data() + at, grate.data() + at, kk.row(at), ka.row(at), derase.data() + at,
                                       dwrite.data() + at, dkey.data() + at, row(at, channel), width);
        });
        add_gradient(dk, gk);
        add_gradient(drate, grate);
        add_gradient(dk_k, kk.sum(kk_shape));
        add_gradient(dk_a, ka.sum(ka_shape));
      });
  return {out[0], out[1], out[2]};
}

Var rwkv7_output(Tape& tape, const Rwkv7OutputInput& in) {
  const OpScope op_scope("rwkv7 output");
  const Shape& shape = in.y.shape();
  const Index width = shape[3], dim = shape[2] * width;
  for (const Var* x : {&in.r, &in.key, &in.v, &in.gate}) require_shape("RWKV-7's output", x->shape(), shape);
  if (in.r_k.value().count() != dim)
    throw ShapeError("RWKV-7's output: {} channels, weights of {}", dim, in.r_k.value().count());
  const Tensor o(shape);
  const auto row = [y = in.y.value(), r = in.r.value(), key = in.key.value(), v = in.v.value(), gate = in.gate.value(),
                    r_k = in.r_k.value()](Index at, Index channel) {
    return kernels::Rwkv7OutputRow{y.data() + at, r.data() + at,    key.data() + at,
                                   v.data() + at, gate.data() + at, r_k.data() + channel};
  };
  for_heads(shape, [&](Index at, Index channel) { kernels::rwkv7_output(o.data() + at, row(at, channel), width); });
  return tape.record(o, {&in.y, &in.r, &in.key, &in.v, &in.gate, &in.r_k},
                     [row, shape, width, dim, dy = in.y.gradient(), dr = in.r.gradient(), dkey = in.key.gradient(),
                      dv = in.v.gradient(), dgate = in.gate.gradient(), dr_k = in.r_k.gradient(),
                      weights = in.r_k.shape()](const Tensor& dout) {
                       const Tensor gy(shape), gr(shape), gkey(shape), gv(shape), ggate(shape);
                       const WeightSums sums(shape, dim);
                       for_heads(shape, [&](Index at, Index channel) {
                         kernels::rwkv7_output_backward({gy.data() + at, gr.data() + at, gkey.data() + at,
                                                         gv.data() + at, ggate.data() + at, sums.row(at)},
                                                        dout.data() + at, row(at, channel), width);
                       });
                       add_gradient(dy, gy);
                       add_gradient(dr, gr);
                       add_gradient(dkey, gkey);
                       add_gradient(dv, gv);
                       add_gradient(dgate, ggate);
                       add_gradient(dr_k, sums.sum(weights));
                     });
}

Var bounded_decay(Tape& tape, const Var& x, Real scale) {
  const OpScope op_scope("bounded decay");
  const Tensor g(x.shape());
  for_blocks(g.count(), kElementBlock, [&](Index begin, Index end) {
    kernels::activate(Activation::sigmoid, g.data() + begin, x.value().data() + begin, end - begin);
    kernels::scale(g.data() + begin, -scale, g.data() + begin, end - begin);
  });
  return tape.record(g, {&x}, [g, scale, dx = x.gradient()](const Tensor& dg) {
    const Tensor d(g.shape());
    for_blocks(g.count(), kElementBlock, [&](Index begin, Index end) {  // dg/dx = g (1 - sigmoid) = g (1 + g / scale)
      for (Index i = begin; i < end; ++i) d.data()[i] = dg.data()[i] * g.data()[i] * (1 + g.data()[i] / scale);
    });
    add_gradient(dx, d);
  });
}

Var blend(Tape& tape, const Var& a, const Var& b, const Var& share) {
  const OpScope op_scope("blend");
  require_shape("blend: b", b.shape(), a.shape());
  require_shape("blend: share", share.shape(), a.shape());
  const Tensor y(a.shape());
  for_blocks(y.count(), kElementBlock, [&](Index i, Index end) {
    kernels::blend(y.data() + i, a.value().data() + i, b.value().data() + i, share.value().data() + i, nullptr,
                   end - i);
  });
  return tape.record(y, {&a, &b, &share},
                     [from = a.value(), to = b.value(), weight = share.value(), da = a.gradient(), db = b.gradient(),
                      dshare = share.gradient()](const Tensor& dy) {
                       const Tensor ga(dy.shape()), gb(dy.shape()), gshare(dy.shape());
                       for_blocks(dy.count(), kElementBlock, [&](Index i, Index end) {
                         const Index n = end - i;
                         kernels::multiply(gb.data() + i, dy.data() + i, weight.data() + i, n);
                         kernels::scale(ga.data() + i, -1, gb.data() + i, n);
                         kernels::add_into(ga.data() + i, dy.data() + i, n);
                         kernels::scale(gshare.data() + i, -1, from.data() + i, n);
                         kernels::add_into(gshare.data() + i, to.data() + i, n);
                         kernels::multiply(gshare.data() + i, gshare.data() + i, dy.data() + i, n);
                       });
                       add_gradient(da, ga);
                       add_gradient(db, gb);
                       add_gradient(dshare, gshare);
                     });
}

}  // namespace quipu::inline QUIPU_REAL_NS
