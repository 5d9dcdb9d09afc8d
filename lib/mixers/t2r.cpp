#include <algorithm>
#include <cmath>
#include <mutex>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_rows.h"
#include "mixers/kernel_memory.h"
#include "mixers/registry.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Transformer-to-RNN: kernel attention with a learned feature map, shared by queries and keys.
///   phi(x) = relu(W_phi x + b_phi) [M], a map for each head;   S_t = S_{t-1} + phi(k_t) v_t^T,  z_t likewise;
///   o_t = phi(q_t / sqrt(K)) S_t / max(phi(q_t / sqrt(K)) z_t, 0.01).
/// With `input_gate`, phi(k_t) is written times sigmoid(W_g x_t), one gate a head.
/// A model that only decodes never forms q and k: the map and the projections before it are one, folded once (`Fold`).
/// State: S [B,H,M,V], z [B,H,M]. Source: arXiv:2103.13076.
class TransformerToRnn final : public Mixer {
 public:
  explicit TransformerToRnn(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))), width_(dim_ / heads_) {
    Options& options = spec.options;
    features_ = options.integer("feature_dim", 32, 1, "features a head (M)");
    gated_ = options.flag("input_gate", false, "a learned gate a head on what is written");
    const double gain = options.real("init_scale", 2, "projections start at Xavier's gain init_scale^-1/2");
    const double least = options.real("least_divisor", 1e-2, "bound of the sum of weights");
    if (!(gain > 0)) throw UsageError("--set init_scale={}: must be above 0", gain);
    if (!(least > 0)) throw UsageError("--set least_divisor={}: must be above 0", least);
    memory_ = KernelMemory(heads_, features_, width_, {.least = least});
    const Initializer start = xavier_uniform(dim_, dim_, 1 / std::sqrt(gain));
    for (Linear* map : {&q_, &k_, &v_}) *map = Linear(dim_, dim_, start, true);
    o_ = Linear(dim_, dim_, xavier_uniform(dim_, dim_), true);
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    map_ = Parameter({heads_, features_, width_}, uniform(bound));
    map_bias_ = undecayed({heads_, features_}, uniform(bound));
    if (gated_) g_ = Linear(heads_, dim_, xavier_uniform(heads_, dim_), true, kGateBias);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Var q = scale(tape, q_(tape, x), query_scale());
    KernelMemory::Input in{
        .q = features(tape, q), .k = features(tape, k_(tape, x)), .v = split_heads(v_(tape, x), heads_)};
    if (gated_) in.k = scale_rows(tape, in.k, activate(tape, g_(tape, x), Activation::sigmoid));
    return o_(tape, join_heads(memory_(tape, in, context.layout, state)));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, rows = lanes * heads_, total = heads_ * features_;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, total), k = scratch.take(lanes, total), v = scratch.take(lanes, dim_);
    const Matrix o = scratch.take(lanes, dim_), gate = scratch.take(lanes, heads_);
    if (folds()) {
      std::call_once(fold_.made, [this] { fold(); });
      linear_into(q, x, fold_.query, fold_.query_bias);
      linear_into(k, x, fold_.key, fold_.key_bias);
    } else {
      const Matrix projected = scratch.take(lanes, dim_);
      const Matrix by_head{projected.data, rows, width_, width_};
      q_.step(projected, x);
      kernels::scale(projected.data, query_scale(), projected.data, lanes * dim_);
      linear_heads_into({q.data, rows, features_, features_}, by_head, map_.value(), map_bias_.value());
      k_.step(projected, x);
      linear_heads_into({k.data, rows, features_, features_}, by_head, map_.value(), map_bias_.value());
    }
    for (const Matrix& phi : {q, k}) activate_into(Activation::relu, phi.data, phi.data, lanes * total);
    v_.step(v, x);
    if (gated_) {
      g_.step(gate, x);
      activate_into(Activation::sigmoid, gate.data, gate.data, rows);
      for (Index i = 0; i < rows; ++i)
        kernels::scale(k.data + i * features_, gate.data[i], k.data + i * features_, features_);
    }
    memory_.step(o, {.q = q, .k = k, .v = v}, state);
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
    visitor("feature_map.weight", map_);
    visitor("feature_map.bias", map_bias_);
    if (gated_) g_.visit(visitor, "g_proj");
    o_.visit(visitor, "o_proj");
  }

  double mixing_cost(Index) const override { return memory_.cost() + static_cast<double>(2 * dim_ * features_); }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .embedding = embedding_beside_sinusoids};
  }

 private:
  static constexpr double kGateBias = 3;

  /// phi before its relu as one map of x:  W~ = s W_phi W_q [H M,D],  b~ = s W_phi b_q + b_phi;  the same of keys, s
  /// = 1.
  struct Fold {
    std::once_flag made;
    Tensor query, query_bias, key, key_bias;
  };

  Var features(Tape& tape, const Var& x) const {
    return activate(tape, linear_heads(tape, split_heads(x, heads_), map_.var(), map_bias_.var()), Activation::relu);
  }

  /// Folding needs weights that stay: those of a model without gradients, which is loaded before its first step and
  /// then only read, in float32. It pays where the folded map is the smaller.
  bool folds() const {
    return !map_.var().wants_gradient() && !q_.weight().is_packed() && !k_.weight().is_packed() &&
           heads_ * features_ <= dim_ + features_;
  }

  void fold() const {
    const auto folded = [&](const Linear& map, Real scale, Tensor& weight, Tensor& bias) {
      weight = Tensor({heads_ * features_, dim_});
      bias = map_bias_.value().clone().reshaped({heads_ * features_});
      for (Index h = 0; h < heads_; ++h) {
        const Matrix phi{map_.value().data() + h * features_ * width_, features_, width_, width_};
        const Matrix rows = map.weight().value().matrix().slice(h * width_, (h + 1) * width_);
        blas::multiply(weight.matrix().slice(h * features_, (h + 1) * features_), phi, rows, 0, scale);
        blas::multiply_vector(bias.data() + h * features_, phi, map.bias().value().data() + h * width_, 1, scale);
      }
    };
    folded(q_, query_scale(), fold_.query, fold_.query_bias);
    folded(k_, 1, fold_.key, fold_.key_bias);
  }

  Real query_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(width_))); }

  Index dim_, heads_, width_, features_ = 0;
  bool gated_ = false;
  Linear q_, k_, v_, g_, o_;
  Parameter map_, map_bias_;
  KernelMemory memory_;
  mutable Fold fold_;
};

}  // namespace

std::unique_ptr<Mixer> make_t2r(const MixerSpec& spec) { return std::make_unique<TransformerToRnn>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
