#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_position.h"
#include "grad/ops_shape.h"
#include "mixers/heads.h"
#include "mixers/input_convs.h"
#include "mixers/registry.h"
#include "scan/positions.h"
#include "scan/softmax_window.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kKeys, kValues, kPosition, kConvs };

/// Causal softmax attention with a cache of keys and values:
///   o_t = sum_s softmax_s(q_t . k_s / sqrt(K)) v_s over the s <= t of the document (the last `window` of them).
/// State: k, v [B,n,Hkv,K], position [B] = tokens of the document so far. The cache has room for the next power of two
/// of the longest lane, the lane's token i in row i; with a window it is a ring of `window` rows, token i in row
/// i mod window. Keys are stored rotated. With short convolutions q, k and v pass one each; their last inputs follow in
/// the state. Sources: arXiv:1706.03762, arXiv:2104.09864 (rotary positions), arXiv:2305.13245 (grouped key heads),
/// arXiv:2109.08668 (convolutions).
class Attention final : public Mixer {
 public:
  explicit Attention(const MixerSpec& spec)
      : dim_(spec.dim), heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))), width_(dim_ / heads_) {
    Options& options = spec.options;
    kv_heads_ =
        options.integer("kv_heads", heads_, 1, "heads of keys and values; they serve the query heads in groups");
    rope_ =
        options.choice("rope", "half", {"none", "half", "interleaved"}, "rotary positions, and which elements pair up");
    base_ = options.real("rope_base", 10000, "base of the rotary frequencies");
    window_ = options.integer("window", 0, 0, "visible tokens, the current one included; 0: all");
    const bool bias = options.flag("bias", false, "the projections have biases");
    if (heads_ % kv_heads_ != 0)
      throw UsageError("--set kv_heads={}: does not divide the {} heads (--heads)", kv_heads_, heads_);
    if (rope_ != "none" && width_ % 2 != 0)
      throw UsageError("--set rope={}: needs heads of even width, not {} (--dim / --heads)", rope_, width_);
    const double depth = std::sqrt(2.0 * static_cast<double>(spec.site.layers));
    q_ = Linear(dim_, dim_, normal(0.02), bias);
    k_ = Linear(kv_heads_ * width_, dim_, normal(0.02), bias);
    v_ = Linear(kv_heads_ * width_, dim_, normal(0.02), bias);
    const Index kv = kv_heads_ * width_;
    convs_ = InputConvs(options, kConvs, {{"q", dim_}, {"k", kv}, {"v", kv}}, Activation::identity);
    o_ = Linear(dim_, dim_, normal(0.02 / depth), bias);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    const Index length = layout.length;
    std::array<Var, 3> qkv{q_(tape, x), k_(tape, x), v_(tape, x)};
    convs_(tape, qkv, layout, state);
    Var q = split_heads(qkv[0], heads_), k = split_heads(qkv[1], kv_heads_);
    const Var v = split_heads(qkv[2], kv_heads_);
    const std::vector<std::int64_t>& position = state.integers(kPosition);
    if (rope_ != "none") {
      const RopeAngles angles = rope_angles(token_positions(layout, position), width_, base_);
      q = rope(tape, q, angles, rope_layout());
      k = rope(tape, k, angles, rope_layout());
    }

    SoftmaxWindowInput in{.q = q, .k = k, .v = v, .scale = score_scale(), .window = window_};
    const Index past = *std::max_element(position.begin(), position.end());
    const Index kept = window_ == 0 ? past : std::min(past, window_);
    if (kept > 0) {
      const std::vector<Index> picks = past_picks(position, kept, state.real(kKeys).extent(1), length);
      in.k = pick_rows(tape, state.real(kKeys), k, picks, kept + length);
      in.v = pick_rows(tape, state.real(kValues), v, picks, kept + length);
      for (const std::int64_t p : position) in.past.push_back(std::min(p, kept));
    }
    const Var y = softmax_window(tape, in, layout);
    if (context.keep_state) store(tape, in, kept, layout, state);
    return o_(tape, join_heads(y));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, kv = kv_heads_ * width_;
    std::vector<std::int64_t>& position = state.integers(kPosition);
    make_room(state, *std::max_element(position.begin(), position.end()) + 1);
    const Index rows = state.real(kKeys).extent(1);
    const Matrix q = context.scratch->take(lanes, dim_), k = context.scratch->take(lanes, kv);
    const Matrix v = context.scratch->take(lanes, kv), o = context.scratch->take(lanes, dim_);
    const Matrix scores = context.scratch->take(lanes * heads_, std::max<Index>(rows, 1));
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    convs_.step(std::array{q, k, v}, state);
    if (rope_ != "none") {
      const View qs{q.data, {lanes, heads_, width_}}, ks{k.data, {lanes, kv_heads_, width_}};
      rope_into(qs, qs, position, base_, rope_layout());
      rope_into(ks, ks, position, base_, rope_layout());
    }
    Real *const keys = state.writable(kKeys).data(), *const values = state.writable(kValues).data();
    for (Index b = 0; b < lanes; ++b) {
      std::int64_t& at = position[static_cast<std::size_t>(b)];
      const Index row = window_ == 0 ? at : at % window_;
      std::copy_n(k.row(b), kv, keys + (b * rows + row) * kv);
      std::copy_n(v.row(b), kv, values + (b * rows + row) * kv);
      ++at;
    }
#pragma omp parallel for schedule(static) if (rows * lanes > 2048)
    for (Index job = 0; job < lanes * heads_; ++job) {
      const Index b = job / heads_, h = job % heads_;
      const Index seen = std::min<Index>(position[static_cast<std::size_t>(b)], rows);
      const Index head = b * rows * kv + h / (heads_ / kv_heads_) * width_;
      softmax_window_step(q.row(b) + h * width_, {keys + head, seen, width_, kv}, {values + head, seen, width_, kv},
                          score_scale(), o.row(b) + h * width_, scores.row(job));
    }
    o_.step(y, o);
  }

  State initial_state(Index lanes) const override {
    State state;
    const Tensor empty = Tensor::zeros({lanes, window_, kv_heads_, width_});
    state.add_real("k", "n H K", empty);
    state.add_real("v", "n H K", empty.clone());
    state.add_integer("position", lanes);
    convs_.add_state(state, lanes);
    return state;
  }

  void reset(State& state, Index lane) const override {
    std::vector<std::int64_t>& position = state.integers(kPosition);
    position[static_cast<std::size_t>(lane)] = 0;
    for (std::size_t leaf = 0; leaf < state.leaves().size(); ++leaf) {
      if (leaf == kPosition) continue;
      Tensor& rows = state.writable(leaf);
      const Index size = rows.count() / state.lanes();
      std::fill_n(rows.data() + lane * size, size, Real{0});
    }
    if (window_ == 0) resize(state, capacity(*std::max_element(position.begin(), position.end())));
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "q_proj");
    k_.visit(visitor, "k_proj");
    v_.visit(visitor, "v_proj");
    convs_.visit(visitor);
    o_.visit(visitor, "o_proj");
  }

  bool sees_blocks() const override { return true; }
  Memory memory() const override { return window_ == 0 ? Memory::growing : Memory::fixed; }
  Index state_bytes(Index length) const override {
    const Index rows = window_ == 0 ? length : window_;
    return 2 * rows * kv_heads_ * width_ * static_cast<Index>(sizeof(float)) + 8 + convs_.state_bytes();
  }
  Index spare_bytes(const State& state) const override {
    if (window_ != 0) return 0;
    const std::vector<std::int64_t>& position = state.integers(kPosition);
    const Index used = position.empty() ? 0 : *std::max_element(position.begin(), position.end());
    const Index spare = state.lanes() * (state.real(kKeys).extent(1) - used);
    return 2 * spare * kv_heads_ * width_ * static_cast<Index>(sizeof(float));
  }
  double mixing_cost(Index length) const override {
    return static_cast<double>(2 * dim_ * (window_ == 0 ? length : std::min(length, window_)));
  }

 private:
  Real score_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(width_))); }
  RopeLayout rope_layout() const { return rope_ == "half" ? RopeLayout::half : RopeLayout::interleaved; }
  static Index capacity(Index tokens) {
    return tokens == 0 ? 0 : static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(tokens)));
  }

  /// The row of the cache that holds token `token` of the document.
  Index cache_row(Index token) const { return window_ == 0 ? token : token % window_; }

  /// The last `kept` tokens of each lane's cache in order, flush with the new ones; -1 where there are fewer.
  std::vector<Index> past_picks(const std::vector<std::int64_t>& position, Index kept, Index rows, Index length) const {
    std::vector<Index> picks;
    for (const std::int64_t tokens : position) {
      for (Index token = tokens - kept; token < tokens; ++token) picks.push_back(token < 0 ? -1 : cache_row(token));
      for (Index t = 0; t < length; ++t) picks.push_back(rows + t);
    }
    return picks;
  }

  /// The cache after the batch, out of the keys and values that it read: `kept` rows of the past, then its tokens.
  void store(Tape& tape, const SoftmaxWindowInput& in, Index kept, const Layout& layout, State& state) const {
    std::vector<std::int64_t>& position = state.integers(kPosition);
    std::vector<Index> behind;  // of each lane, the row after its last token
    for (Index b = 0; b < layout.batch; ++b) behind.push_back(kept + layout.lane_length(b));
    advance_positions(layout, position);
    const Index rows = window_ == 0 ? capacity(*std::max_element(position.begin(), position.end())) : window_;
    std::vector<Index> picks(static_cast<std::size_t>(layout.batch * rows), -1);
    for (Index b = 0; b < layout.batch; ++b) {
      const Index tokens = position[static_cast<std::size_t>(b)];
      for (Index token = std::max<Index>(0, tokens - rows); token < tokens; ++token)
        picks[static_cast<std::size_t>(b * rows + cache_row(token))] =
            behind[static_cast<std::size_t>(b)] - (tokens - token);
    }
    state.real(kKeys) = pick_rows(tape, in.k, {}, picks, rows);
    state.real(kValues) = pick_rows(tape, in.v, {}, picks, rows);
  }

  void make_room(State& state, Index tokens) const {
    if (window_ == 0 && state.real(kKeys).extent(1) < tokens) resize(state, capacity(tokens));
  }

  void resize(State& state, Index rows) const {
    for (const Leaf leaf : {kKeys, kValues}) {
      const Tensor old = state.real(leaf).value();
      if (old.extent(1) == rows) continue;
      const Index lanes = old.extent(0), size = kv_heads_ * width_, common = std::min(rows, old.extent(1)) * size;
      Tensor grown = Tensor::zeros({lanes, rows, kv_heads_, width_});
      for (Index b = 0; b < lanes; ++b)
        std::copy_n(old.data() + b * old.extent(1) * size, common, grown.data() + b * rows * size);
      state.real(leaf) = Var(std::move(grown));
    }
  }

  Index dim_, heads_, width_, kv_heads_ = 0, window_ = 0;
  std::string rope_;
  double base_ = 10000;
  Linear q_, k_, v_, o_;
  InputConvs convs_;
};

}  // namespace

std::unique_ptr<Mixer> make_attention(const MixerSpec& spec) { return std::make_unique<Attention>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
