#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "mixers/kernel_memory.h"
#include "mixers/registry.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Kernel attention with the feature map phi(x) = elu(x) + 1:
///   S_t = S_{t-1} + phi(k_t) v_t^T,  z_t = z_{t-1} + phi(k_t),  o_t = phi(q_t) S_t / (phi(q_t) z_t + eps).
/// State: S [B,H,K,V], z [B,H,K]. Sources: arXiv:2006.16236; with `variant=fla`, flash-linear-attention's layer, which
/// scales q by K^-1/2, normalises the output of each head and by default leaves the denominator out.
class LinearAttention final : public Mixer {
 public:
  explicit LinearAttention(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, 4)), width_(dim_ / heads_) {
    fla_ =
        spec.options.choice("variant", "katharopoulos", {"katharopoulos", "fla"}, "whose form of the layer") == "fla";
    const bool normalise = spec.options.flag("normalise", !fla_, "divide by the sum of the weights");
    memory_ = KernelMemory(heads_, width_, width_, {.eps = fla_ ? 1e-10 : 1e-6}, normalise);
    for (Linear* map : {&q_, &k_, &v_, &o_}) *map = Linear(dim_, dim_, normal(0.02));
    if (fla_) norm_ = undecayed({width_}, constant(1));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    Var q = activate(tape, q_(tape, x), Activation::elu1);
    if (fla_) q = scale(tape, q, query_scale());
    const Var k = activate(tape, k_(tape, x), Activation::elu1);
    Var y =
        memory_(tape, {.q = split_heads(q, heads_), .k = split_heads(k, heads_), .v = split_heads(v_(tape, x), heads_)},
                context.layout, state);
    if (fla_) y = rms_norm(tape, y, norm_.var(), kNormEpsilon);
    return o_(tape, join_heads(y));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), k = scratch.take(lanes, dim_), v = scratch.take(lanes, dim_);
    const Matrix o = scratch.take(lanes, dim_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    activate_into(Activation::elu1, q.data, q.data, lanes * dim_);
    activate_into(Activation::elu1, k.data, k.data, lanes * dim_);
    if (fla_) kernels::scale(q.data, query_scale(), q.data, lanes * dim_);
    memory_.step(o, {.q = q, .k = k, .v = v}, state);
    const View rows{o.data, {lanes * heads_, width_}};
    if (fla_) rms_norm_into(rows, rows, norm_.value(), kNormEpsilon);
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    memory_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    if (fla_) visitor("norm.weight", norm_);
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override { return memory_.cost(); }
  BlockDefaults block() const override { return {.positions = "sinusoidal"}; }

 private:
  static constexpr double kNormEpsilon = 1e-5;
  Real query_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(width_))); }

  Index dim_, heads_, width_;
  bool fla_ = false;
  KernelMemory memory_;
  Linear q_, k_, v_, o_;
  Parameter norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_linear_attention(const MixerSpec& spec) { return std::make_unique<LinearAttention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
