#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_quotient.h"
#include "mixers/heads.h"
#include "mixers/registry.h"
#include "scan/outer_scan.h"

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
    normalise_ = spec.options.flag("normalise", !fla_, "divide by the sum of the weights");
    for (Linear* map : {&q_, &k_, &v_, &o_}) *map = Linear(dim_, dim_, normal(0.02));
    if (fla_) norm_ = undecayed({width_}, constant(1));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    OuterScanInput scan;
    scan.q = split_heads(activate(tape, q_(tape, x), Activation::elu1), heads_);
    scan.k = split_heads(activate(tape, k_(tape, x), Activation::elu1), heads_);
    scan.v = split_heads(v_(tape, x), heads_);
    scan.state = state.real(0);
    scan.normaliser = normalise_;
    if (normalise_) scan.z = state.real(1);
    const OuterScanOutput out = outer_scan(tape, scan, context.layout);
    state.real(0) = out.state;
    if (normalise_) state.real(1) = out.z;
    Var y = fla_ ? scale(tape, out.y, query_scale()) : out.y;
    if (normalise_) {
      const Var denominator = fla_ ? scale(tape, out.denominator, query_scale()) : out.denominator;
      y = quotient(tape, y, denominator, epsilon());
    }
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
    Real* const s = state.writable(0).data();
    Real* const z = normalise_ ? state.writable(1).data() : nullptr;
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index at = i * width_;
      Real denominator = 1;
      Real* const out = o.data + at;
      outer_scan_step(Decay::none, {q.data + at, 1, width_, width_}, k.data + at, v.data + at, nullptr,
                      {s + at * width_, width_, width_, width_}, z == nullptr ? nullptr : z + at,
                      {out, 1, width_, width_}, &denominator);
      const Real query = fla_ ? query_scale() : Real{1};
      const Real divisor = normalise_ ? denominator * query + static_cast<Real>(epsilon()) : Real{1};
      for (Index c = 0; c < width_; ++c) out[c] = out[c] * query / divisor;
    }
    const View rows{o.data, {lanes * heads_, width_}};
    if (fla_) rms_norm_into(rows, rows, norm_.value(), kNormEpsilon);
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, width_, width_}));
    if (normalise_) state.add_real("z", "H K", Tensor::zeros({lanes, heads_, width_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    if (fla_) visitor("norm.weight", norm_);
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override {
    return static_cast<double>(2 * dim_ * width_ + (normalise_ ? 2 * dim_ : 0));
  }
  BlockDefaults block() const override { return {.positions = "sinusoidal"}; }

 private:
  static constexpr double kNormEpsilon = 1e-5;
  double epsilon() const { return fla_ ? 1e-10 : 1e-6; }
  Real query_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(width_))); }

  Index dim_, heads_, width_;
  bool fla_ = false, normalise_ = true;
  Linear q_, k_, v_, o_;
  Parameter norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_linear_attention(const MixerSpec& spec) { return std::make_unique<LinearAttention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
