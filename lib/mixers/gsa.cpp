#include <array>

#include "base/blocks.h"
#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "mixers/heads.h"
#include "mixers/input_convs.h"
#include "mixers/registry.h"
#include "mixers/slot_memory.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// f = log sigmoid(u) / tau and s = 1 - e^f, the forget gate of the slots and what it lets in.
struct SlotGate {
  Var log_decay, input;
};

SlotGate slot_gate(Tape& tape, const Var& u, Real tau) {
  const OpScope op_scope("slot gate");
  Tensor f(u.shape()), s(u.shape());
  for_blocks(u.value().count(), kElementBlock, [&](Index begin, Index end) {
    Real *const fs = f.data() + begin, *const ss = s.data() + begin;
    activate_into(Activation::log_sigmoid, fs, u.value().data() + begin, end - begin);
    kernels::scale(fs, 1 / tau, fs, end - begin);
    kernels::one_minus_exp(ss, fs, end - begin);
  });
  auto out = tape.record_all({f, s}, {&u}, [u = u.value(), s, tau, du = u.gradient()](std::span<Tensor> dout) {
    for (Tensor& d : dout)
      if (!d.defined()) d = Tensor::zeros(u.shape());
    Tensor g(u.shape());
    for_blocks(u.count(), kElementBlock, [&](Index begin, Index end) {
      // ds/df = -e^f = s - 1;  df/du = sigmoid(-u) / tau
      kernels::scale(g.data() + begin, -1, u.data() + begin, end - begin);
      activate_into(Activation::sigmoid, g.data() + begin, g.data() + begin, end - begin);
      const Real *const df = dout[0].data(), *const ds = dout[1].data(), *const input = s.data();
      for (Index i = begin; i < end; ++i) g.data()[i] *= (df[i] + (input[i] - 1) * ds[i]) / tau;
    });
    add_gradient(du, g);
  });
  return {out[0], out[1]};
}

/// Gated Slot Attention: M slots a head, each with a key and a value, which forget at their own pace.
///   q, k, v = silu(W x);  f = log sigmoid(W_f x) / tau [M];  s = 1 - e^f
///   hk_t = hk_{t-1} diag(e^f) + k s^T [K,M];   a = softmax(q hk_t);   hv_t = diag(e^f) hv_{t-1} + s v^T [M,V];
///   o = a hv_t;   y = W_o RMSNorm(silu(o)).
/// With short convolutions q, k, v = silu(silu(conv(W x))), as published.
/// State: hk [B,Hkv,K,M], hv [B,Hkv,M,V]; the convolutions' inputs conv_q, conv_k, conv_v [B,W-1,..].
/// Source: arXiv:2409.07146.
class GatedSlotAttention final : public Mixer {
 public:
  explicit GatedSlotAttention(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, 4)), width_(dim_ / heads_) {
    slots_ = spec.options.integer("slots", 64, 1, "memory slots a head (M)");
    tau_ = static_cast<Real>(spec.options.real("gate_logit_normalizer", 8, "damping of the forget gate (tau)"));
    kv_heads_ = spec.options.integer("kv_heads", heads_, 1,
                                     "heads of keys, values and slots; they serve the query heads in groups");
    if (heads_ % kv_heads_ != 0) throw UsageError("--set kv_heads={}: does not divide the {} heads", kv_heads_, heads_);
    if (!(tau_ > 0)) throw UsageError("--set gate_logit_normalizer={}: must be above 0", tau_);
    q_ = Linear(dim_, dim_, normal(0.02));
    k_ = Linear(kv_heads_ * width_, dim_, normal(0.02));
    v_ = Linear(kv_heads_ * width_, dim_, normal(0.02));
    f_ = Linear(kv_heads_ * slots_, dim_, normal(0.02));
    o_ = Linear(dim_, dim_, normal(0.02));
    norm_ = undecayed({dim_}, constant(1));
    const bool bias = spec.options.flag("conv_bias", false, "biases of the short convolutions");
    const Index kv = kv_heads_ * width_;
    convs_ = InputConvs(spec.options, 2, {{"q", dim_}, {"k", kv}, {"v", kv}}, Activation::silu, bias);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    std::array<Var, 3> qkv{q_(tape, x), k_(tape, x), v_(tape, x)};
    convs_(tape, qkv, context.layout, state);
    const Var q = split_heads(activate(tape, qkv[0], Activation::silu), heads_);
    const Var k = split_heads(activate(tape, qkv[1], Activation::silu), kv_heads_);
    const Var v = split_heads(activate(tape, qkv[2], Activation::silu), kv_heads_);
    const auto [f, s] = slot_gate(tape, split_heads(f_(tape, x), kv_heads_), tau_);

    const SlotMemoryInput in{.q = q, .k = k, .v = v, .key_weight = s, .value_weight = s, .log_decay = f};
    const Var read = slot_memory(tape, in, context.layout, state.real(0), state.real(1));
    const Var o = activate(tape, join_heads(read), Activation::silu);
    return o_(tape, rms_norm(tape, o, norm_.var(), kNormEpsilon));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, kv = kv_heads_ * width_, gates = kv_heads_ * slots_, group = heads_ / kv_heads_;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), k = scratch.take(lanes, kv), v = scratch.take(lanes, kv);
    const Matrix decay = scratch.take(lanes, gates), s = scratch.take(lanes, gates), o = scratch.take(lanes, dim_);
    const Matrix weights = scratch.take(group, slots_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x), f_.step(decay, x);
    convs_.step(std::array{q, k, v}, state);
    for (const Matrix& m : {q, k, v}) activate_into(Activation::silu, m.data, m.data, m.rows * m.cols);
    activate_into(Activation::log_sigmoid, decay.data, decay.data, lanes * gates);
    kernels::scale(decay.data, 1 / tau_, decay.data, lanes * gates);
    kernels::one_minus_exp(s.data, decay.data, lanes * gates);
    kernels::exp(decay.data, decay.data, lanes * gates);
    Real *const hk = state.writable(0).data(), *const hv = state.writable(1).data();
    for (Index i = 0; i < lanes * kv_heads_; ++i) {
      const Index at = i * width_, slot = i * slots_, query = i * group * width_;
      const SlotMemoryStep in{.q = {q.data + query, group, width_, width_},
                              .k = k.data + at,
                              .v = v.data + at,
                              .key_weight = s.data + slot,
                              .value_weight = s.data + slot,
                              .decay_factor = decay.data + slot};
      slot_memory_step(in, {hk + at * slots_, width_, slots_, slots_}, {hv + at * slots_, slots_, width_, width_},
                       weights, {o.data + query, group, width_, width_});
    }
    activate_into(Activation::silu, o.data, o.data, lanes * dim_);
    const View rows{o.data, {lanes, dim_}};
    rms_norm_into(rows, rows, norm_.value(), kNormEpsilon);
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("hk", "H K M", Tensor::zeros({lanes, kv_heads_, width_, slots_}));
    state.add_real("hv", "H M V", Tensor::zeros({lanes, kv_heads_, slots_, width_}));
    convs_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    f_.visit(visitor, "f_proj");
    convs_.visit(visitor);
    visitor("g_norm.weight", norm_);
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override { return static_cast<double>(2 * (heads_ + kv_heads_) * slots_ * width_); }

 private:
  static constexpr double kNormEpsilon = 1e-5;
  Index dim_, heads_, width_, slots_ = 0, kv_heads_ = 0;
  Real tau_ = 8;
  Linear q_, k_, v_, f_, o_;
  InputConvs convs_;
  Parameter norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_gsa(const MixerSpec& spec) { return std::make_unique<GatedSlotAttention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
