#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_position.h"
#include "mixers/gated_output.h"
#include "mixers/registry.h"
#include "mixers/slot_memory.h"
#include "scan/log_sum_scan.h"
#include "scan/positions.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Attention with Bounded-memory Control: M slots a head, each the average of all tokens under weights of its own.
///   q, k, v = W x, q and k rotated;  s = clamp(W_s x) [M];  z_t = log(e^{z_{t-1}} + e^s);  w = e^{s - z};
///   g = z_{t-1} - z_t;  hk_t = hk_{t-1} diag(e^g) + k w^T [K,M];  a = softmax(q hk_t / sqrt(K));
///   hv_t = diag(e^g) hv_{t-1} + w v^T [M,V];  o = a hv_t;   y = W_o (RMSNorm(o) silu(W_g x)).
/// State: hk [B,H,K,M], hv [B,H,M,V], the normaliser z [B,H,M], without which nothing could go on from hk and hv, and
/// position [B]. Source: arXiv:2110.02488, as flash-linear-attention builds the layer.
class BoundedMemory final : public Mixer {
 public:
  explicit BoundedMemory(const MixerSpec& spec) : heads_(checked_heads(spec, 4)) {
    Options& options = spec.options;
    slots_ = options.integer("slots", 64, 1, "memory slots a head (M)");
    const double expand_k = options.real("expand_k", 0.5, "width of all keys, as a part of the model's");
    const double expand_v = options.real("expand_v", 1, "width of all values, as a part of the model's");
    rope_ = options.flag("use_rope", true, "queries and keys are rotated by their positions");
    base_ = options.real("rope_base", 10000, "base of the rotary frequencies");
    bound_ = static_cast<Real>(options.real("logit_bound", 32, "logits of the slots are kept within this of 0"));
    key_ = head_width(spec, expand_k, rope_, "expand_k");
    value_ = head_width(spec, expand_v, false, "expand_v");
    q_ = Linear(heads_ * key_, spec.dim, normal(0.02));
    k_ = Linear(heads_ * key_, spec.dim, normal(0.02));
    v_ = Linear(heads_ * value_, spec.dim, normal(0.02));
    s_ = Linear(heads_ * slots_, spec.dim, normal(0.02));
    const double eps = options.real("norm_eps", 1e-5, "epsilon of the heads' norm");
    out_ = GatedOutput(spec.dim, heads_, value_, "g_norm", true, eps);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    Var q = split_heads(q_(tape, x), heads_), k = split_heads(k_(tape, x), heads_);
    if (rope_) {
      const RopeAngles angles = rope_angles(token_positions(layout, state.integers(kPosition)), key_, base_);
      q = rope(tape, q, angles, RopeLayout::half);
      k = rope(tape, k, angles, RopeLayout::half);
    }
    const Var logits = clamp(tape, split_heads(s_(tape, x), heads_), -bound_, bound_);
    const LogSumScanOutput share = log_sum_scan(tape, logits, state.real(kNormaliser), layout);
    const SlotMemoryInput in{.q = q,
                             .k = k,
                             .v = split_heads(v_(tape, x), heads_),
                             .key_weight = share.weight,
                             .value_weight = share.weight,
                             .log_decay = share.log_decay,
                             .scale = score_scale()};
    const Var o = slot_memory(tape, in, layout, state.real(kKeys), state.real(kValues));
    state.real(kNormaliser) = share.state;
    advance_positions(layout, state.integers(kPosition));
    return out_(tape, o, x);
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, rows = lanes * heads_;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, heads_ * key_), k = scratch.take(lanes, heads_ * key_);
    const Matrix v = scratch.take(lanes, heads_ * value_), o = scratch.take(lanes, heads_ * value_);
    const Matrix logits = scratch.take(lanes, heads_ * slots_), weight = scratch.take(rows, slots_);
    const Matrix decay = scratch.take(rows, slots_), scores = scratch.take(1, slots_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x), s_.step(logits, x);
    std::vector<std::int64_t>& position = state.integers(kPosition);
    if (rope_) {
      const View qs{q.data, {lanes, heads_, key_}}, ks{k.data, {lanes, heads_, key_}};
      rope_into(qs, qs, position, base_, RopeLayout::half);
      rope_into(ks, ks, position, base_, RopeLayout::half);
    }
    for (std::int64_t& tokens : position) ++tokens;
    clamp_into(logits.data, logits.data, -bound_, bound_, rows * slots_);
    log_sum_scan_step(logits.data, state.writable(kNormaliser).data(), decay.data, weight.data, rows * slots_);
    kernels::exp(decay.data, decay.data, rows * slots_);
    Real *const hk = state.writable(kKeys).data(), *const hv = state.writable(kValues).data();
    for (Index i = 0; i < rows; ++i) {
      const SlotMemoryStep in{.q = {q.data + i * key_, 1, key_, key_},
                              .k = k.data + i * key_,
                              .v = v.data + i * value_,
                              .key_weight = weight.row(i),
                              .value_weight = weight.row(i),
                              .decay_factor = decay.row(i),
                              .scale = score_scale()};
      slot_memory_step(in, {hk + i * key_ * slots_, key_, slots_, slots_},
                       {hv + i * slots_ * value_, slots_, value_, value_}, scores,
                       {o.data + i * value_, 1, value_, value_});
    }
    out_.step(y, o, x, scratch);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("hk", "H K M", Tensor::zeros({lanes, heads_, key_, slots_}));
    state.add_real("hv", "H M V", Tensor::zeros({lanes, heads_, slots_, value_}));
    state.add_real("z", "H M", Tensor::full({lanes, heads_, slots_}, kernels::kNoLogSum));
    state.add_integer("position", lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    s_.visit(visitor, "s_proj");
    out_.visit(visitor);
  }

  double mixing_cost(Index) const override { return static_cast<double>(2 * heads_ * slots_ * (key_ + value_)); }

 private:
  enum Leaf : std::size_t { kKeys, kValues, kNormaliser, kPosition };

  /// The width of a head that makes `part` of the model's, in whole channels, and in pairs where they are rotated.
  Index head_width(const MixerSpec& spec, double part, bool pairs, const char* option) const {
    const double wanted = part * static_cast<double>(spec.dim) / static_cast<double>(heads_);
    const Index step = pairs ? 2 : 1;
    const Index width = std::max(step, static_cast<Index>(wanted) / step * step);
    if (static_cast<double>(width) != wanted)
      spec.options.note(fmt::format("{}={}: {} channels a head instead of {}", option, part, width, wanted));
    return width;
  }
  Real score_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(key_))); }

  Index heads_, slots_ = 0, key_ = 0, value_ = 0;
  bool rope_ = true;
  double base_ = 10000;
  Real bound_ = 32;
  Linear q_, k_, v_, s_;
  GatedOutput out_;
};

}  // namespace

std::unique_ptr<Mixer> make_abc(const MixerSpec& spec) { return std::make_unique<BoundedMemory>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
