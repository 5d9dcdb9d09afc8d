#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/registry.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// y = W_2 f(W_1 x + b_1) + b_2, with f = gelu (tanh form), relu or relu^2. No state.
class Mlp final : public Mixer {
 public:
  explicit Mlp(const MixerSpec& spec) : dim_(spec.dim) {
    hidden_ = spec.options.integer("hidden", 4 * dim_, 1, "width between the two maps");
    activation_ = activation_from_name(
        spec.options.choice("activation", "gelu", {"gelu", "relu", "relu2"}, "nonlinearity between the two maps"));
    const bool bias = spec.options.flag("bias", true, "both maps have a bias");
    const double depth = std::sqrt(2.0 * static_cast<double>(spec.site.layers));
    in_ = Linear(hidden_, dim_, normal(0.02), bias);
    out_ = Linear(dim_, hidden_, normal(0.02 / depth), bias);
  }

  Var forward(Tape& tape, const Var& x, const Context&, State&) const override {
    return out_(tape, activate(tape, in_(tape, x), activation_));
  }

  void step(Matrix x, Matrix y, const Context& context, State&) const override {
    const Matrix h = context.scratch->take(x.rows, hidden_);
    in_.step(h, x);
    activate_into(activation_, h.data, h.data, h.rows * h.cols);
    out_.step(y, h);
  }

  State initial_state(Index) const override { return {}; }
  void reset(State&, Index) const override {}
  void visit(const ParameterVisitor& visitor) override {
    in_.visit(visitor, "c_fc");
    out_.visit(visitor, "c_proj");
  }
  double mixing_cost(Index) const override { return 0; }

 private:
  Index dim_, hidden_ = 0;
  Activation activation_ = Activation::gelu;
  Linear in_, out_;
};

}  // namespace

std::unique_ptr<Mixer> make_mlp(const MixerSpec& spec) { return std::make_unique<Mlp>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
