#include <algorithm>

#include "mixers/delta_inputs.h"
#include "mixers/gated_output.h"
#include "mixers/registry.h"
#include "mixers/time_step.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// g = -e^{A} softplus(u + b), one A and b a head.  u, g: [..,H];  A, b: [H]. On plain arrays; g may be u.
void decay_into(Real* g, const Real* u, Index rows, const Tensor& a_log, const Tensor& bias) {
  const Index heads = a_log.count();
  for (Index r = 0; r < rows; ++r) kernels::add(g + r * heads, u + r * heads, bias.data(), heads);
  kernels::activate(Activation::softplus, g, g, rows * heads);
  for (Index h = 0; h < heads; ++h) {
    const Real rate = -std::exp(a_log.data()[h]);
    for (Index r = 0; r < rows; ++r) g[r * heads + h] *= rate;
  }
}

Var head_decay(Tape& tape, const Var& u, const Var& a_log, const Var& bias) {
  const OpScope op_scope("head decay");
  const Index heads = a_log.value().count(), rows = u.value().count() / heads;
  Tensor g(u.shape());
  decay_into(g.data(), u.value().data(), rows, a_log.value(), bias.value());
  return tape.record(g, {&u, &a_log, &bias},
                     [g, u = u.value(), rates = a_log.value(), shift = bias.value(), du = u.gradient(),
                      da = a_log.gradient(), db = bias.gradient(), rows, heads](const Tensor& dg) {
                       Tensor slope(u.shape());
                       for (Index r = 0; r < rows; ++r)
                         kernels::add(slope.data() + r * heads, u.data() + r * heads, shift.data(), heads);
                       kernels::activate(Activation::sigmoid, slope.data(), slope.data(), slope.count());
                       Tensor rate_sum({heads}), shift_sum({heads});
                       for (Index h = 0; h < heads; ++h) {
                         const Real rate = -std::exp(rates.data()[h]);
                         double through_rate = 0, through_shift = 0;
                         for (Index i = h; i < rows * heads; i += heads) {
                           through_rate += static_cast<double>(dg.data()[i] * g.data()[i]);
                           slope.data()[i] *= rate * dg.data()[i];
                           through_shift += static_cast<double>(slope.data()[i]);
                         }
                         rate_sum.data()[h] = static_cast<Real>(through_rate);
                         shift_sum.data()[h] = static_cast<Real>(through_shift);
                       }
                       add_gradient(du, slope);
                       add_gradient(da, rate_sum);
                       add_gradient(db, shift_sum);
                     });
}

/// log of uniform numbers in [0, 16), kept off zero.
void rate_start(std::span<Real> values, const Rng& rng) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Real>(std::log(std::max(16 * rng.uniform(i), 1e-6)));
}

/// Gated DeltaNet: the delta rule over a memory that also fades.
///   q, k, v, beta as in DeltaNet;  g = -e^{A_log} softplus(W_a x + dt_bias), one a value head
///   S_t = (I - beta_t k_t k_t^T) e^{g_t} S_{t-1} + beta_t k_t v_t^T;   o_t = K^-1/2 q_t S_t
///   y = W_o (RMSNorm(o) silu(W_g x))
/// There may be more value heads than key heads: they share keys and queries in groups, and each has a memory. State: S
/// [B,H,K,V], the last inputs of the convolutions. Source: arXiv:2412.06464.
class GatedDeltaNet final : public Mixer {
 public:
  explicit GatedDeltaNet(const MixerSpec& spec) {
    const Index dim = spec.dim, key_heads = spec.heads > 0 ? spec.heads : 6;
    // Published: 6 heads of 256 at width 2048, keys three quarters as wide as the model.
    const Index fitting = std::max<Index>(1, 3 * dim / (4 * key_heads));
    const Index key = spec.options.integer("head_dim", std::min<Index>(256, fitting), 1, "key width of a head (K)");
    if (fitting < 256 && key == fitting)
      spec.options.note(fmt::format("head_dim {} instead of 256: {} heads at width {}", key, key_heads, dim));
    const double expand = spec.options.real("expand_v", 2, "value width of a head, in key widths");
    const auto value = static_cast<Index>(expand * static_cast<double>(key));
    if (value < 1) throw UsageError("--set expand_v={}: values of width {}; take more", expand, value);
    const Index heads = spec.options.integer("num_v_heads", key_heads, 1, "heads of values, in groups over the keys");
    if (heads % key_heads != 0)
      throw UsageError("--set num_v_heads={}: no multiple of the {} key heads", heads, key_heads);
    const bool gate = spec.options.flag("use_gate", true, "gate the output by silu(W_g x)");
    in_ = DeltaInputs({dim, key_heads, heads, key, value}, spec.options);
    const double eps = spec.options.real("norm_eps", 1e-5, "epsilon of the heads' norm");
    out_ = GatedOutput(dim, heads, value, "o_norm", gate, eps);
    a_ = Linear(heads, dim, normal(0.02));
    rate_ = undecayed({heads}, rate_start);
    step_ = undecayed({heads}, time_step_biases());
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    DeltaScanInput scan = in_(tape, x, context.layout, state);
    scan.decay = Decay::scalar;
    scan.log_decay = head_decay(tape, a_(tape, x), rate_.var(), step_.var());
    const DeltaScanOutput out = delta_scan(tape, scan, context.layout);
    state.real(0) = out.state;
    return out_(tape, out.y, x);
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const DeltaInputs::Sizes& s = in_.sizes();
    const Matrix o = context.scratch->take(x.rows, s.value_heads * s.value);
    const Matrix decay = context.scratch->take(x.rows, s.value_heads);
    a_.step(decay, x);
    decay_into(decay.data, decay.data, x.rows, rate_.value(), step_.value());
    kernels::exp(decay.data, decay.data, decay.rows * decay.cols);
    in_.step(o, x, decay.data, *context.scratch, state);
    out_.step(y, o, x, *context.scratch);
  }

  State initial_state(Index lanes) const override { return in_.initial_state(lanes); }

  void visit(const ParameterVisitor& visitor) override {
    in_.visit(visitor);
    a_.visit(visitor, "a_proj");
    visitor("A_log", rate_);
    visitor("dt_bias", step_);
    out_.visit(visitor);
  }

  double mixing_cost(Index) const override { return in_.mixing_cost(); }

 private:
  DeltaInputs in_;
  GatedOutput out_;
  Linear a_;
  Parameter rate_, step_;
};

}  // namespace

std::unique_ptr<Mixer> make_gated_deltanet(const MixerSpec& spec) { return std::make_unique<GatedDeltaNet>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
