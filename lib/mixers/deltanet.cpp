#include "mixers/delta_inputs.h"
#include "mixers/gated_output.h"
#include "mixers/registry.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// DeltaNet: a memory that replaces what it holds under a key instead of adding to it.
///   q, k = silu(conv(W x)) of length 1, v = silu(conv(W x)), beta = sigmoid(W_b x)
///   S_t = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T;   o_t = K^-1/2 q_t S_t;   y = W_o RMSNorm(o)
/// and, with `use_gate`, times silu(W_g x) before W_o. State: S [B,H,K,V], the last inputs of the convolutions.
/// Sources: arXiv:2102.11174, arXiv:2406.06484.
class DeltaNet final : public Mixer {
 public:
  explicit DeltaNet(const MixerSpec& spec) {
    const Index dim = spec.dim, heads = checked_heads(spec, 4);
    const bool gate = spec.options.flag("use_gate", false, "gate the output by silu(W_g x)");
    const auto width = [&](const char* name, const char* help) {
      const double expand = spec.options.real(name, 1, help);
      const auto wide = static_cast<Index>(expand * static_cast<double>(dim / heads));
      if (wide < 1) throw UsageError("--set {}={}: heads of width {} at width {}; take more", name, expand, wide, dim);
      return wide;
    };
    const Index key = width("expand_k", "width of all keys, in model widths");
    const Index value = width("expand_v", "width of all values, in model widths");
    in_ = DeltaInputs({dim, heads, heads, key, value}, spec.options);
    const double eps = spec.options.real("norm_eps", 1e-5, "epsilon of the heads' norm");
    out_ = GatedOutput(dim, heads, value, "o_norm", gate, eps);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const DeltaScanOutput out = delta_scan(tape, in_(tape, x, context.layout, state), context.layout);
    state.real(0) = out.state;
    return out_(tape, out.y, x);
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Matrix o = context.scratch->take(x.rows, in_.sizes().value_heads * in_.sizes().value);
    in_.step(o, x, nullptr, *context.scratch, state);
    out_.step(y, o, x, *context.scratch);
  }

  State initial_state(Index lanes) const override { return in_.initial_state(lanes); }

  void visit(const ParameterVisitor& visitor) override {
    in_.visit(visitor);
    out_.visit(visitor);
  }

  double mixing_cost(Index) const override { return in_.mixing_cost(); }

 private:
  DeltaInputs in_;
  GatedOutput out_;
};

}  // namespace

std::unique_ptr<Mixer> make_deltanet(const MixerSpec& spec) { return std::make_unique<DeltaNet>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
