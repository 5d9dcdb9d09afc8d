#include <algorithm>
#include <array>

#include "base/blocks.h"
#include "mixers/gated_output.h"
#include "mixers/input_convs.h"
#include "mixers/low_rank.h"
#include "mixers/registry.h"
#include "scan/outer_scan.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// g = log sigmoid(u) / tau, in place.
void damped_gate(Real* u, Real tau, Index n) {
  activate_into(Activation::log_sigmoid, u, u, n);
  kernels::scale(u, 1 / tau, u, n);
}

Var damped_gate(Tape& tape, const Var& u, Real tau) {
  const OpScope op_scope("damped gate");
  const Tensor g(u.shape());
  for_blocks(g.count(), kElementBlock, [&](Index begin, Index end) {
    std::copy(u.value().data() + begin, u.value().data() + end, g.data() + begin);
    damped_gate(g.data() + begin, tau, end - begin);
  });
  return tape.record(g, {&u}, [g, tau, slot = u.gradient()](const Tensor& dg) {
    const Tensor du(dg.shape());
    for_blocks(du.count(), kElementBlock, [&](Index begin, Index end) {
      const Index n = end - begin;
      Real* const d = du.data() + begin;
      kernels::scale(d, tau, g.data() + begin, n);  // log sigmoid(u), whose derivative is 1 - e^itself
      kernels::one_minus_exp(d, d, n);
      kernels::multiply(d, d, dg.data() + begin, n);
      kernels::scale(d, 1 / tau, d, n);
    });
    slot->add(du);
  });
}

/// Gated Linear Attention: every channel of the keys forgets at a pace of its own, which the input sets.
///   q, k, v = W x;  g = log sigmoid(W_2 W_1 x + b) / tau [K];   S_t = diag(e^g) S_{t-1} + k v^T [K,V];
///   y = W_o (RMSNorm(q S_t / sqrt(K)) silu(W_g x)).
/// With a short convolution q, k and v pass one each, and silu. State: S [B,H,K,V], and the convolutions' last inputs.
/// Source: arXiv:2312.06635, as flash-linear-attention builds the layer.
class GatedLinearAttention final : public Mixer {
 public:
  explicit GatedLinearAttention(const MixerSpec& spec) : heads_(checked_heads(spec, 4)) {
    Options& options = spec.options;
    const double expand_k = options.real("expand_k", 0.5, "width of all keys, as a part of the model's");
    const double expand_v = options.real("expand_v", 1, "width of all values, as a part of the model's");
    const Index rank = options.integer("gate_low_rank_dim", 16, 1, "rank of the forget gate's projection");
    tau_ = static_cast<Real>(options.real("gate_logit_normalizer", 16, "damping of the forget gate (tau)"));
    if (!(tau_ > 0)) throw UsageError("--set gate_logit_normalizer={}: must be above 0", tau_);
    key_ = expanded_head_width(spec, heads_, expand_k, "expand_k");
    value_ = expanded_head_width(spec, heads_, expand_v, "expand_v");
    const Index keys = heads_ * key_, values = heads_ * value_;
    q_ = Linear(keys, spec.dim, normal(0.02));
    k_ = Linear(keys, spec.dim, normal(0.02));
    v_ = Linear(values, spec.dim, normal(0.02));
    gate_ = LowRank(Linear(rank, spec.dim, normal(0.02)), Linear(keys, rank, normal(0.02), true));
    convs_ = InputConvs(options, 1, {{"q", keys}, {"k", keys}, {"v", values}});
    // The scale of q stands in the norm's epsilon: RMSNorm(c o; eps) = RMSNorm(o; eps / c^2).
    const double eps = options.real("norm_eps", 1e-5, "epsilon of the heads' norm");
    out_ = GatedOutput(spec.dim, heads_, value_, "g_norm_swish_gate", true, eps * static_cast<double>(key_));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    std::array<Var, 3> qkv{q_(tape, x), k_(tape, x), v_(tape, x)};
    convs_(tape, qkv, context.layout, state);
    OuterScanInput scan{.decay = Decay::key};
    scan.q = split_heads(qkv[0], heads_);
    scan.k = split_heads(qkv[1], heads_);
    scan.v = split_heads(qkv[2], heads_);
    scan.log_decay = damped_gate(tape, split_heads(gate_(tape, x), heads_), tau_);
    scan.state = state.real(0);
    const OuterScanOutput o = outer_scan(tape, scan, context.layout);
    state.real(0) = o.state;
    return out_(tape, o.y, x);
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, keys = heads_ * key_, values = heads_ * value_;
    Scratch& scratch = *context.scratch;
    const std::array<Matrix, 3> qkv{scratch.take(lanes, keys), scratch.take(lanes, keys), scratch.take(lanes, values)};
    const Matrix decay = scratch.take(lanes, keys), o = scratch.take(lanes, values);
    q_.step(qkv[0], x), k_.step(qkv[1], x), v_.step(qkv[2], x);
    convs_.step(qkv, state);
    gate_.step(decay, x, scratch);
    damped_gate(decay.data, tau_, lanes * keys);
    kernels::exp(decay.data, decay.data, lanes * keys);
    Real* const s = state.writable(0).data();
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index key = i * key_, value = i * value_;
      outer_scan_step(Decay::key, {qkv[0].data + key, 1, key_, key_}, qkv[1].data + key, qkv[2].data + value,
                      decay.data + key, {s + key * value_, key_, value_, value_}, nullptr,
                      {o.data + value, 1, value_, value_}, nullptr);
    }
    out_.step(y, o, x, scratch);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, key_, value_}));
    convs_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    gate_.visit(visitor, "gk_proj.0", "gk_proj.1");
    convs_.visit(visitor);
    out_.visit(visitor);
  }

  double mixing_cost(Index) const override { return static_cast<double>(2 * heads_ * key_ * value_); }

 private:
  Index heads_, key_ = 0, value_ = 0;
  Real tau_ = 16;
  Linear q_, k_, v_;
  LowRank gate_;
  InputConvs convs_;
  GatedOutput out_;
};

}  // namespace

std::unique_ptr<Mixer> make_gla(const MixerSpec& spec) { return std::make_unique<GatedLinearAttention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
