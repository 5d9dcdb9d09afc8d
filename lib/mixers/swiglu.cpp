#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/registry.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// y = W_down (silu(W_gate x) * W_up x), no biases, no state. The hidden width is 8 d / 3 rounded up to a multiple, so
/// that it costs what an MLP of width 4 d does. Source: arXiv:2002.05202.
class SwiGlu final : public Mixer {
 public:
  explicit SwiGlu(const MixerSpec& spec) : dim_(spec.dim) {
    const Index multiple = dim_ >= 256 ? 256 : 32;
    const Index standard = (8 * dim_ / 3 + multiple - 1) / multiple * multiple;
    hidden_ = spec.options.integer("hidden", standard, 1, "width of the gate");
    gate_ = Linear(hidden_, dim_, normal(0.02));
    up_ = Linear(hidden_, dim_, normal(0.02));
    down_ = Linear(dim_, hidden_, normal(0.02));
  }

  Var forward(Tape& tape, const Var& x, const Context&, State&) const override {
    return down_(tape, gated(tape, gate_(tape, x), up_(tape, x), Activation::silu));
  }

  void step(Matrix x, Matrix y, const Context& context, State&) const override {
    const Matrix gate = context.scratch->take(x.rows, hidden_), up = context.scratch->take(x.rows, hidden_);
    gate_.step(gate, x), up_.step(up, x);
    kernels::gated(Activation::silu, gate.data, gate.data, up.data, x.rows * hidden_);
    down_.step(y, gate);
  }

  State initial_state(Index) const override { return {}; }
  void reset(State&, Index) const override {}
  void visit(const ParameterVisitor& visitor) override {
    gate_.visit(visitor, "gate_proj");
    up_.visit(visitor, "up_proj");
    down_.visit(visitor, "down_proj");
  }
  double mixing_cost(Index) const override { return 0; }

 private:
  Index dim_, hidden_ = 0;
  Linear gate_, up_, down_;
};

}  // namespace

std::unique_ptr<Mixer> make_swiglu(const MixerSpec& spec) { return std::make_unique<SwiGlu>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
