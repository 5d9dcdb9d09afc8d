#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_embed.h"
#include "grad/ops_rows.h"
#include "mixers/heads.h"
#include "mixers/registry.h"
#include "mixers/slot_memory.h"
#include "scan/positions.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Linformer in its causal form, a memory of k slots into which the token at position t writes with weights of its own:
///   hk_t = hk_{t-1} + k_t E_t [K,k];   a = softmax(q hk_t / sqrt(K));   hv_t = hv_{t-1} + F_t^T v_t [k,V];   o = a
///   hv_t; y = W_o o. E, F [N,k] are learned over the N positions of the model's length; all heads share them.
/// (Linformer's own projections of whole sequences look ahead, so no causal mask can be put on them; this is how
/// arXiv:2110.02488 reads it. A longer stream is an error.)
/// State: hk [B,H,K,k], hv [B,H,k,V], position [B]. Source: arXiv:2006.04768.
class Linformer final : public Mixer {
 public:
  explicit Linformer(const MixerSpec& spec)
      : dim_(spec.dim),
        heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))),
        width_(dim_ / heads_),
        length_(spec.length) {
    Options& options = spec.options;
    slots_ = options.integer("k", 256, 1, "projected length: memory slots, the same for all heads");
    if (slots_ > length_) {
      options.note(fmt::format("k={}: {} slots, as many as the length", slots_, length_));
      slots_ = length_;
    }
    shared_ = options.flag("share_kv", false, "values are the keys, and their slots too");
    for (Linear* map : {&q_, &k_}) *map = Linear(dim_, dim_, normal(0.02));
    if (!shared_) v_ = Linear(dim_, dim_, normal(0.02));
    o_ = Linear(dim_, dim_, normal(0.02), true);
    const double bound = 1 / std::sqrt(static_cast<double>(slots_));
    key_rows_ = Parameter({length_, slots_}, uniform(bound), {.by_position = true});
    if (!shared_) value_rows_ = Parameter({length_, slots_}, uniform(bound), {.by_position = true});
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    std::vector<std::int64_t>& position = state.integers(kPosition);
    const std::vector<std::int64_t> positions = token_positions(layout, position);
    require_within("linformer", positions, length_);
    const std::vector<std::int32_t> rows(positions.begin(), positions.end());
    const auto weights = [&](const Parameter& table) {
      return repeat_heads(tape, embedding(tape, rows, table.var(), {layout.batch, layout.length}), heads_);
    };
    const Var k = split_heads(k_(tape, x), heads_), key_weight = weights(key_rows_);
    const SlotMemoryInput in{.q = split_heads(q_(tape, x), heads_),
                             .k = k,
                             .v = shared_ ? k : split_heads(v_(tape, x), heads_),
                             .key_weight = key_weight,
                             .value_weight = shared_ ? key_weight : weights(value_rows_),
                             .scale = score_scale()};
    const Var o = slot_memory(tape, in, layout, state.real(kKeys), state.real(kValues));
    advance_positions(layout, position);
    return o_(tape, join_heads(o));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), k = scratch.take(lanes, dim_), o = scratch.take(lanes, dim_);
    const Matrix v = shared_ ? k : scratch.take(lanes, dim_), scores = scratch.take(1, slots_);
    std::vector<std::int64_t>& position = state.integers(kPosition);
    require_within("linformer", position, length_);
    q_.step(q, x), k_.step(k, x);
    if (!shared_) v_.step(v, x);
    Real *const hk = state.writable(kKeys).data(), *const hv = state.writable(kValues).data();
    for (Index i = 0; i < lanes * heads_; ++i) {
      const Index row = position[static_cast<std::size_t>(i / heads_)] * slots_, at = i * width_;
      const Real* const key_weight = key_rows_.value().data() + row;
      const SlotMemoryStep in{.q = {q.data + at, 1, width_, width_},
                              .k = k.data + at,
                              .v = v.data + at,
                              .key_weight = key_weight,
                              .value_weight = shared_ ? key_weight : value_rows_.value().data() + row,
                              .scale = score_scale()};
      slot_memory_step(in, {hk + at * slots_, width_, slots_, slots_}, {hv + at * slots_, slots_, width_, width_},
                       scores, {o.data + at, 1, width_, width_});
    }
    for (std::int64_t& tokens : position) ++tokens;
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("hk", "H K M", Tensor::zeros({lanes, heads_, width_, slots_}));
    state.add_real("hv", "H M V", Tensor::zeros({lanes, heads_, slots_, width_}));
    state.add_integer("position", lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    if (!shared_) v_.visit(visitor, "v_proj");
    visitor("proj_k", key_rows_);
    if (!shared_) visitor("proj_v", value_rows_);
    o_.visit(visitor, "o_proj");
  }

  Memory memory() const override { return Memory::fixed_length; }
  double mixing_cost(Index) const override { return static_cast<double>(4 * slots_ * dim_); }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .embedding = embedding_beside_sinusoids};
  }

 private:
  enum Leaf : std::size_t { kKeys, kValues, kPosition };
  Real score_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(width_))); }

  Index dim_, heads_, width_, length_, slots_ = 0;
  bool shared_ = false;
  Linear q_, k_, v_, o_;
  Parameter key_rows_, value_rows_;
};

}  // namespace

std::unique_ptr<Mixer> make_linformer(const MixerSpec& spec) { return std::make_unique<Linformer>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
