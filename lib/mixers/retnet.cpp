#include <array>
#include <cmath>

#include "grad/ops_position.h"
#include "mixers/gated_output.h"
#include "mixers/input_convs.h"
#include "mixers/registry.h"
#include "scan/outer_scan.h"
#include "scan/positions.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Multi-scale retention: every head forgets at a fixed pace of its own, the last ones slowest.
///   q, k, v = W x, q and k rotated;   S_t = gamma_h S_{t-1} + k v^T [K,V],  gamma_h = 1 - 2^{-5-h};
///   y = W_o (RMSNorm(q S_t / sqrt(K)) silu(W_g x)).
/// `variant=fla` pairs the halves of a head under the usual angles and has a weight in its norm; `torchscale` pairs
/// neighbours under 10000^{-i/(K/2-1)} and has none. With short convolutions q, k and v pass one each, and silu.
/// State: S [B,H,K,V], position [B], and the convolutions' last inputs. Source: arXiv:2307.08621.
class Retention final : public Mixer {
 public:
  explicit Retention(const MixerSpec& spec) : dim_(spec.dim), heads_(checked_heads(spec, 8)) {
    Options& options = spec.options;
    const bool fla = options.choice("variant", "fla", {"fla", "torchscale"}, "whose rotation and norm") == "fla";
    const double expand_k = options.real("expand_k", 1, "width of all keys, as a part of the model's");
    const double expand_v = options.real("expand_v", 2, "width of all values, as a part of the model's");
    const double eps = options.real("norm_eps", fla ? 1e-5 : 1e-6, "epsilon of the heads' norm");
    key_ = expanded_head_width(spec, heads_, expand_k, "expand_k", 2);
    value_ = expanded_head_width(spec, heads_, expand_v, "expand_v");
    layout_ = fla ? RopeLayout::half : RopeLayout::interleaved;
    if (!fla && key_ > 2) base_ = std::pow(base_, static_cast<double>(key_) / static_cast<double>(key_ - 2));
    const Index keys = heads_ * key_, values = heads_ * value_;
    q_ = Linear(keys, spec.dim, normal(0.02));
    k_ = Linear(keys, spec.dim, normal(0.02));
    v_ = Linear(values, spec.dim, normal(0.02));
    convs_ = InputConvs(options, kConvs, {{"q", keys}, {"k", keys}, {"v", values}});
    // The scale of q stands in the norm's epsilon: RMSNorm(c o; eps) = RMSNorm(o; eps / c^2).
    out_ = GatedOutput(spec.dim, heads_, value_, fla ? "g_norm_swish_gate" : "", true, eps * static_cast<double>(key_));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    const RopeAngles angles = rope_angles(token_positions(layout, state.integers(kPosition)), key_, base_);
    std::array<Var, 3> qkv{q_(tape, x), k_(tape, x), v_(tape, x)};
    convs_(tape, qkv, layout, state);
    OuterScanInput scan{.decay = Decay::scalar};
    scan.q = rope(tape, split_heads(qkv[0], heads_), angles, layout_);
    scan.k = rope(tape, split_heads(qkv[1], heads_), angles, layout_);
    scan.v = split_heads(qkv[2], heads_);
    scan.log_decay = log_decays();
    scan.state = state.real(kState);
    const OuterScanOutput o = outer_scan(tape, scan, layout);
    state.real(kState) = o.state;
    advance_positions(layout, state.integers(kPosition));
    return out_(tape, o.y, x);
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, heads_ * key_), k = scratch.take(lanes, heads_ * key_);
    const Matrix v = scratch.take(lanes, heads_ * value_), o = scratch.take(lanes, heads_ * value_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    convs_.step(std::array{q, k, v}, state);
    std::vector<std::int64_t>& position = state.integers(kPosition);
    const View qs{q.data, {lanes, heads_, key_}}, ks{k.data, {lanes, heads_, key_}};
    rope_into(qs, qs, position, base_, layout_);
    rope_into(ks, ks, position, base_, layout_);
    for (std::int64_t& tokens : position) ++tokens;
    Real* const s = state.writable(kState).data();
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index key = i * key_, value = i * value_;
      const auto gamma = static_cast<Real>(std::exp(log_decay(i % heads_)));
      outer_scan_step(Decay::scalar, {q.data + key, 1, key_, key_}, k.data + key, v.data + value, &gamma,
                      {s + key * value_, key_, value_, value_}, nullptr, {o.data + value, 1, value_, value_}, nullptr);
    }
    out_.step(y, o, x, scratch);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, key_, value_}));
    state.add_integer("position", lanes);
    convs_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    convs_.visit(visitor);
    out_.visit(visitor);
  }

  double mixing_cost(Index) const override { return static_cast<double>(2 * heads_ * key_ * value_); }
  /// The channel mixer is half as wide as usual: the values are twice as wide.
  BlockDefaults block() const override {
    const Index multiple = dim_ >= 256 ? 256 : 32, hidden = (4 * dim_ / 3 + multiple - 1) / multiple * multiple;
    return {.channel_options = {{"hidden", std::to_string(hidden)}}};
  }

 private:
  enum Leaf : std::size_t { kState, kPosition, kConvs };

  static double log_decay(Index head) { return std::log1p(-std::exp2(-5.0 - static_cast<double>(head))); }

  /// [H], a constant.
  Tensor log_decays() const {
    Tensor g({heads_});
    for (Index h = 0; h < heads_; ++h) g.data()[h] = static_cast<Real>(log_decay(h));
    return g;
  }

  Index dim_, heads_, key_ = 0, value_ = 0;
  RopeLayout layout_ = RopeLayout::half;
  double base_ = 10000;
  Linear q_, k_, v_;
  InputConvs convs_;
  GatedOutput out_;
};

}  // namespace

std::unique_ptr<Mixer> make_retnet(const MixerSpec& spec) { return std::make_unique<Retention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
