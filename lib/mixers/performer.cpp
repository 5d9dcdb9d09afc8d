#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_features.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "mixers/kernel_memory.h"
#include "mixers/random_features.h"
#include "mixers/registry.h"
#include "scan/max_scan.h"
#include "tensor/blas.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Performer: softmax attention's kernel by positive orthogonal random features (FAVOR+), in its streaming form.
///   u(x) = c W x - c^2 |x|^2 / 2, c = K^-1/4;   phi(k_t) = e^{u(k_t) - m_t}, m_t the largest exponent so far;
///   S_t = e^{m_{t-1} - m_t} S_{t-1} + phi(k_t) v_t^T, z_t likewise;   o_t = phi(q_t) S_t / (phi(q_t) z_t).
/// phi(q) is needed but for a factor and is taken as softmax(c W q). Nothing is added inside the features, so that the
/// result is exactly causal and the same however the stream is cut, which the published stabiliser is not.
/// State: S [B,H,M,V], z [B,H,M], both times e^-m, and m [B,H]. Source: arXiv:2009.14794.
class Performer final : public Mixer {
 public:
  explicit Performer(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))), width_(dim_ / heads_) {
    Options& options = spec.options;
    const auto k = static_cast<double>(width_);
    features_ = options.integer("nb_features", std::max<Index>(1, static_cast<Index>(k * std::log(k))), 1,
                                "random features a head (M); K ln K of a head of width K");
    const bool hyperbolic = options.choice("feature_map", "positive", {"positive", "hyperbolic"},
                                           "hyperbolic: half as many draws, each with both signs") == "hyperbolic";
    if (hyperbolic && features_ % 2 != 0) {
      options.note(fmt::format("nb_features={}: one more, for pairs of signs", features_));
      ++features_;
    }
    for (Linear* map : {&q_, &k_, &v_, &o_}) *map = Linear(dim_, dim_, normal(0.02));
    projection_ = buffer({features_, width_}, orthogonal_features(features_, width_, hyperbolic));
    memory_ = KernelMemory(heads_, features_, width_, {.least = kLeast});
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Var q = scale(tape, split_heads(q_(tape, x), heads_), feature_scale());
    const Var k = split_heads(k_(tape, x), heads_);
    const MaxScanOutput keys = max_scan(tape, positive_exponents(tape, k, projection_.value(), feature_scale()),
                                        state.real(kMaximum), context.layout);
    state.real(kMaximum) = keys.state;
    const Var y = memory_(tape,
                          {.q = softmax_rows(tape, linear(tape, q, projection_.var()), 1),
                           .k = keys.features,
                           .v = split_heads(v_(tape, x), heads_),
                           .log_decay = keys.log_decay},
                          context.layout, state);
    return o_(tape, join_heads(y));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, rows = lanes * heads_;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), k = scratch.take(lanes, dim_), v = scratch.take(lanes, dim_);
    const Matrix o = scratch.take(lanes, dim_), decay = scratch.take(1, rows);
    const Matrix queries = scratch.take(rows, features_), keys = scratch.take(rows, features_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    const Matrix q_rows{q.data, rows, width_, width_}, k_rows{k.data, rows, width_, width_};
    const Real c = feature_scale();
    blas::multiply_bt(queries, q_rows, projection_.value().matrix(), 0, c);
    blas::multiply_bt(keys, k_rows, projection_.value().matrix(), 0, c);
    Real* const m = state.writable(kMaximum).data();
    for (Index i = 0; i < rows; ++i) {
      kernels::softmax_row(queries.row(i), queries.row(i), 1, features_);
      const Real half = c * c * kernels::sum_of_squares(k_rows.row(i), width_) / 2;
      for (Index j = 0; j < features_; ++j) keys(i, j) -= half;
      decay(0, i) = max_scan_step(keys.row(i), keys.row(i), m + i, features_);
    }
    kernels::exp(decay.data, decay.data, rows);
    memory_.step(o, {.q = queries, .k = keys, .v = v, .decay_factor = decay.data}, state);
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    memory_.add_state(state, lanes);
    state.add_real("m", "H", Tensor::full({lanes, heads_}, kNoMaximum));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    visitor("projection", projection_);
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override {
    return memory_.cost() + static_cast<double>(2 * heads_ * features_ * width_);
  }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .embedding = embedding_beside_sinusoids};
  }

 private:
  static constexpr std::size_t kMaximum = 2;
  /// What is divided by where every key is out of sight of a query: a sum that has vanished leaves 0, not 0 / 0.
  static constexpr double kLeast = 1e-30;
  Real feature_scale() const { return static_cast<Real>(std::pow(static_cast<double>(width_), -0.25)); }

  Index dim_, heads_, width_, features_ = 0;
  Linear q_, k_, v_, o_;
  Parameter projection_;
  KernelMemory memory_;
};

}  // namespace

std::unique_ptr<Mixer> make_performer(const MixerSpec& spec) { return std::make_unique<Performer>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
