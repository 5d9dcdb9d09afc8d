#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_features.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_rows.h"
#include "mixers/kernel_memory.h"
#include "mixers/random_features.h"
#include "mixers/registry.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Random Feature Attention: the softmax of unit queries and keys by random Fourier features.
///   phi(x) = c (sin(W n), cos(W n)) [2D],  n = sigma x / (|x| + eps) / tau,  W fixed and normal, sigma learned;
///   S_t = S_{t-1} + phi(k_t) v_t^T, z_t likewise;   o_t = phi(q_t) S_t / divisor(phi(q_t) z_t).
/// With `gate`: r_t = sigmoid(W_g x_t) a head, S_t = r_t S_{t-1} + (1 - r_t) phi(k_t) v_t^T, z_t likewise.
/// Features of both signs make sums near 0, so the divisor is bounded. paper: c = D^-1/2, the divisor's size at least
/// 1e-6 with its sign kept; code: as published, c = 0.1 and the divisor at least 1; masked: the published training
/// path, c = 0.1 and the sum's size, at least 1e-3. State: S [B,H,2D,V], z [B,H,2D]. Source: arXiv:2103.02143.
class RandomFeatureAttention final : public Mixer {
 public:
  explicit RandomFeatureAttention(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))), width_(dim_ / heads_) {
    Options& options = spec.options;
    const std::string variant = options.choice("variant", "paper", {"paper", "code", "masked"},
                                               "whose scale of the features and bound of the divisor");
    half_ = options.integer("proj_dim", 64, 1, "random directions a head (D); twice as many features");
    gated_ = options.flag("gate", false, "a learned gate a head forgets");
    const bool paper = variant == "paper";
    eps_ = options.real("norm_eps", paper ? 1e-6 : 1e-3, "added to the length of queries and keys");
    tau_ = options.real("tau", 1, "queries and keys are divided by this");
    const bool orthogonal = options.flag("orthogonal", false, "directions orthogonal in blocks");
    const double least = options.real("least_divisor",
                                      paper               ? 1e-6
                                      : variant == "code" ? 1.0
                                                          : 1e-3,
                                      "bound of the sum of weights");
    if (!(eps_ >= 0)) throw UsageError("--set norm_eps={}: is below 0", eps_);
    if (!(tau_ > 0)) throw UsageError("--set tau={}: must be above 0", tau_);
    if (!(least > 0)) throw UsageError("--set least_divisor={}: must be above 0", least);
    feature_scale_ = static_cast<Real>(paper ? 1 / std::sqrt(static_cast<double>(half_)) : 0.1);
    const Divisor::Bound bound = paper               ? Divisor::Bound::signed_
                                 : variant == "code" ? Divisor::Bound::value
                                                     : Divisor::Bound::magnitude;
    memory_ = KernelMemory(heads_, 2 * half_, width_, {.least = least, .bound = bound});
    for (Linear* map : {&q_, &k_, &v_}) *map = Linear(dim_, dim_, xavier_uniform(dim_, dim_, std::sqrt(0.5)), true);
    o_ = Linear(dim_, dim_, xavier_uniform(dim_, dim_), true);
    sigma_ = undecayed({heads_, 1, width_}, constant(1));
    // Rows of all heads; blocks of `width` of them are orthogonal, where asked for.
    const Index rows = heads_ * half_;
    directions_ = buffer({heads_, half_, width_}, orthogonal ? orthogonal_features(rows, width_) : normal(1));
    if (gated_) g_ = Linear(heads_, dim_, normal(0.02), true, kGateBias);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    KernelMemory::Input in{
        .q = features(tape, q_(tape, x)), .k = features(tape, k_(tape, x)), .v = split_heads(v_(tape, x), heads_)};
    if (gated_) {
      const Var logit = g_(tape, x);
      in.log_decay = activate(tape, logit, Activation::log_sigmoid);
      in.k = scale_rows(tape, in.k, activate(tape, scale(tape, logit, -1), Activation::sigmoid));
    }
    return o_(tape, join_heads(memory_(tape, in, context.layout, state)));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, rows = lanes * heads_;
    Scratch& scratch = *context.scratch;
    const Matrix v = scratch.take(lanes, dim_), o = scratch.take(lanes, dim_);
    const Matrix q = scratch.take(rows, 2 * half_), k = scratch.take(rows, 2 * half_);
    step_features(q, q_, x, scratch);
    step_features(k, k_, x, scratch);
    v_.step(v, x);
    const Matrix keep = scratch.take(lanes, heads_), write = scratch.take(lanes, heads_);
    if (gated_) {
      g_.step(keep, x);
      kernels::scale(write.data, -1, keep.data, rows);
      activate_into(Activation::sigmoid, keep.data, keep.data, rows);
      activate_into(Activation::sigmoid, write.data, write.data, rows);
      for (Index i = 0; i < rows; ++i) kernels::scale(k.row(i), write.data[i], k.row(i), k.cols);
    }
    memory_.step(o, {.q = q, .k = k, .v = v, .decay_factor = gated_ ? keep.data : nullptr}, state);
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
    visitor("sigma", sigma_);
    visitor("random_matrices", directions_);
    if (gated_) g_.visit(visitor, "g_proj");
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override { return memory_.cost() + static_cast<double>(2 * dim_ * half_); }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .embedding = embedding_beside_sinusoids};
  }

 private:
  static constexpr double kGateBias = 3;  // keeps 95 % a token at first

  Var features(Tape& tape, const Var& x) const {
    Var n = unit_rows(tape, split_heads(x, heads_), sigma_.var(), eps_);
    if (tau_ != 1) n = scale(tape, n, static_cast<Real>(1 / tau_));
    return sine_cosine(tape, linear_heads(tape, n, directions_.var()), feature_scale_);
  }

  void step_features(Matrix phi, const Linear& map, Matrix x, Scratch& scratch) const {
    const Matrix projected = scratch.take(x.rows, dim_), angles = scratch.take(phi.rows, half_);
    map.step(projected, x);
    const Matrix rows{projected.data, phi.rows, width_, width_};
    unit_rows_into(rows, rows, sigma_.value(), eps_);
    kernels::scale(projected.data, static_cast<Real>(1 / tau_), projected.data, x.rows * dim_);
    linear_heads_into(angles, rows, directions_.value());
    sine_cosine_into(phi, angles, feature_scale_);
  }

  Index dim_, heads_, width_, half_ = 0;
  bool gated_ = false;
  double eps_ = 1e-6, tau_ = 1;
  Real feature_scale_ = 1;
  Linear q_, k_, v_, g_, o_;
  Parameter sigma_, directions_;
  KernelMemory memory_;
};

}  // namespace

std::unique_ptr<Mixer> make_rfa(const MixerSpec& spec) { return std::make_unique<RandomFeatureAttention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
