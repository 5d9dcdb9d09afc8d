#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_position.h"
#include "grad/ops_shape.h"
#include "mixers/registry.h"
#include "scan/relative_attention.h"
#include "scan/segment_plan.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/transposed_weight.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kCache, kOpen, kOpenRows, kCachedRows };

constexpr double kEps = 1e-5;
constexpr std::uint64_t kResidualSite = rng_site("transformer-xl residual dropout");

/// Sinusoids [rows,width] of distances rows-1 .. 0: one table for all layers in use that have these extents.
std::shared_ptr<const Tensor> distance_table(Index rows, Index width) {
  static std::mutex mutex;
  static std::map<std::pair<Index, Index>, std::weak_ptr<const Tensor>> tables;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Tensor>& kept = tables[{rows, width}];
  std::shared_ptr<const Tensor> table = kept.lock();
  if (!table) {
    std::vector<std::int64_t> distances(static_cast<std::size_t>(rows));
    std::iota(distances.rbegin(), distances.rend(), 0);
    table = std::make_shared<const Tensor>(sinusoids(SinusoidLayout::halves, distances, width));
    kept = table;
  }
  return table;
}

/// Attention over the segment and M cached rows before it, by relative distance (see relative_attention), with its own
/// residual and norm:  y = norm(x + W_o attention),  or, with `pre_norm`, y = x + W_o attention of normalised rows, the
/// cached ones included.
/// A segment closes after S rows of a document, however the input is cut. State: the rows of the layer's input, cache
/// [B,M,D] of closed segments, never with a gradient, and open [B,S,D] of the segment so far, with theirs; two counts.
/// Source: arXiv:1901.02860; blocks of memory rows: arXiv:2207.06881.
class TransformerXl final : public Mixer {
 public:
  explicit TransformerXl(const MixerSpec& spec)
      : dim_(spec.dim),
        segment_(spec.length),
        heads_(checked_heads(spec, std::max<Index>(1, spec.dim / 64))),
        width_(dim_ / heads_),
        layer_(spec.site.layer) {
    Options& options = spec.options;
    memory_ = options.integer("memory", segment_, 0, "rows that are cached of the segments before; 0: none");
    pre_norm_ = options.flag("pre_norm", false, "the norm stands before the attention, not behind the sum");
    const Index clamp = options.integer("clamp", 0, 0, "greater distances count as this one; 0: each as itself");
    const bool same_length = options.flag("same_length", false, "every row sees `memory` rows, itself included");
    read_cache_ = options.flag("read_cache", false, "memory tokens' rows see the cached rows");
    if (same_length && memory_ == 0) throw UsageError("--set same_length=true: needs cached rows, but memory=0");
    if (dim_ % 2 != 0) throw UsageError("--dim {}: transformer_xl needs an even width, for its sinusoids", dim_);
    window_ = same_length ? memory_ : 0;
    reach_ = clamp > 0 ? std::min(memory_ + segment_, clamp + 1) : memory_ + segment_;
    const double depth = pre_norm_ ? std::sqrt(2.0 * static_cast<double>(spec.site.layers)) : 1;
    qkv_ = Linear(3 * dim_, dim_, normal(0.02));
    r_ = Linear(dim_, dim_, normal(0.02));
    o_ = Linear(dim_, dim_, normal(0.02 / depth));
    weight_ = undecayed({dim_}, constant(1));
    bias_ = undecayed({dim_}, constant(0));
    content_bias_ = &spec.shared.get("content_bias", undecayed({heads_, width_}, normal(0.02)));
    position_bias_ = &spec.shared.get("position_bias", undecayed({heads_, width_}, normal(0.02)));
    table_ = distance_table(reach_, dim_);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const SegmentPlan plan(context.layout, segment_, memory_, state.integers(kOpenRows), state.integers(kCachedRows));
    const Var cache = state.real(kCache).detached(), open = state.real(kOpen);
    const Index rows = x.extent(0) * x.extent(1);

    Var own = x.reshaped({rows, dim_});
    if (!plan.own.empty()) own = gather_rows(tape, {open, x}, plan.own, {std::ssize(plan.own), dim_});
    RelativeAttentionInput in{.qkv = qkv_(tape, normed_first(tape, own)),
                              .distances = r_(tape, distances_for(plan)),
                              .content_bias = content_bias_->var(),
                              .position_bias = position_bias_->var(),
                              .units = plan.units,
                              .window = window_,
                              .blocks_see_past = read_cache_,
                              .segment = segment_};
    const std::vector<Var> constants{cache, open.detached(), x.detached()};
    if (!plan.past.empty()) {
      const Var past = gather_rows(tape, constants, plan.past, {std::ssize(plan.past), dim_});
      in.past = qkv_.rows(tape, normed_first(tape, past), dim_, 3 * dim_);
    }
    Var change = o_(tape, relative_attention(tape, in, x.shape()));
    if (context.training && context.dropout > 0)
      change = dropout(tape, change, context.dropout,
                       Rng(context.seed, context.step, kResidualSite + static_cast<std::uint64_t>(layer_)));
    if (context.keep_state) {
      state.real(kCache) = gather_rows(tape, constants, plan.cache, cache.shape());
      state.real(kOpen) = gather_rows(tape, {open, x}, plan.open, open.shape());
      state.integers(kOpenRows) = plan.open_rows;
      state.integers(kCachedRows) = plan.cached_rows;
    }
    const Var sum = add(tape, x, change);
    return pre_norm_ ? sum : layer_norm(tape, sum, weight_.var(), bias_.var(), kEps);
  }

  /// The keys' and distances' maps are applied to the query instead, the values' map to the weighted sum of rows: no
  /// cached row is projected.
  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix content = scratch.take(lanes * heads_, dim_), by_distance = scratch.take(lanes * heads_, dim_);
    const Matrix mixed = scratch.take(lanes * heads_, dim_), out = scratch.take(lanes, dim_);
    const Matrix scores = scratch.take(lanes * heads_, memory_ + segment_);
    const Matrix rows = pre_norm_ ? scratch.take(memory_ + segment_, dim_) : Matrix{};
    turn_queries(x, content, by_distance, scratch);
    for (Index b = 0; b < lanes; ++b) {
      const auto head_rows = [&](Matrix all) { return all.slice(b * heads_, (b + 1) * heads_); };
      std::int64_t& opened = state.integers(kOpenRows)[static_cast<std::size_t>(b)];
      const Index cached = state.integers(kCachedRows)[static_cast<std::size_t>(b)];
      Real* const open = state.writable(kOpen).data() + b * segment_ * dim_;
      Real* const cache = state.writable(kCache).data() + b * memory_ * dim_;
      std::copy_n(x.row(b), dim_, open + opened++ * dim_);
      Matrix old{cache, cached, dim_, dim_}, own{open, opened, dim_, dim_};
      if (pre_norm_) {
        old = normalised(rows.slice(0, cached), old);
        own = normalised(rows.slice(cached, cached + opened), own);
      }
      const Matrix weights{scores.row(b * heads_), heads_, cached + opened, scores.stride};
      weigh(weights, head_rows(content), head_rows(by_distance), old, own);
      mix(head_rows(mixed), weights, old, own);
      if (opened == segment_) close_segment(state, b);
    }
    for (Index h = 0; h < heads_; ++h)
      linear_into(out.columns(h * width_, (h + 1) * width_), head_of(mixed, h, lanes), part(2, h));
    o_.step(y, out);
    for (Index b = 0; b < lanes; ++b) kernels::add_into(y.row(b), x.row(b), dim_);
    if (!pre_norm_) normalised(y, y);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("cache", "M D", Tensor::zeros({lanes, memory_, dim_}));
    state.add_real("open", "S D", Tensor::zeros({lanes, segment_, dim_}));
    state.add_integer("open_rows", lanes);
    state.add_integer("cached_rows", lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    qkv_.visit(visitor, "qkv_proj");
    r_.visit(visitor, "r_proj");
    o_.visit(visitor, "o_proj");
    visitor("norm.weight", weight_);
    visitor("norm.bias", bias_);
  }

  bool owns_residual() const override { return true; }
  bool sees_blocks() const override { return true; }
  /// Of the parallel form; a step, which projects no cached row, takes `heads` times as many.
  double mixing_cost(Index length) const override {
    return static_cast<double>(3 * dim_ * std::min(length, memory_ + segment_));
  }
  BlockDefaults block() const override {
    BlockDefaults suits;
    suits.channel_mixer = "mlp";
    suits.channel_options = {{"activation", "relu"}};
    suits.norm = "layernorm";
    suits.tied_head = suits.head_bias = suits.scaled_embedding = true;
    suits.post_norm = !pre_norm_;
    suits.final_norm = false;
    suits.memory_mask = "blocks";
    suits.memory_state = "carried";
    return suits;
  }

 private:
  Var normed_first(Tape& tape, const Var& rows) const {
    return pre_norm_ ? layer_norm(tape, rows, weight_.var(), bias_.var(), kEps) : rows;
  }
  /// to = norm of from.
  Matrix normalised(Matrix to, Matrix from) const {
    layer_norm_into({to.data, {to.rows, to.cols}}, {from.data, {from.rows, from.cols}}, weight_.value(), bias_.value(),
                    kEps);
    return to;
  }

  /// The rows of the table that the plan's queries may need.
  Tensor distances_for(const SegmentPlan& plan) const {
    Index most = 1;
    for (const RelativeUnit& unit : plan.units) {
      const Index own = unit.blocks.empty() ? unit.own.end - unit.own.begin : segment_;
      most = std::max(most, unit.past.end - unit.past.begin + own);
    }
    most = std::min(most, reach_);
    return table_->part((reach_ - most) * dim_, {most, dim_});
  }

  /// The rows of the joint map that make head h's queries (0), keys (1) or values (2).
  Weight part(Index which, Index h) const {
    const Index first = which * dim_ + h * width_;
    return qkv_.weight().weight().rows(first, first + width_);
  }
  /// Head h of rows [lanes H,D], one a lane.
  Matrix head_of(Matrix rows, Index h, Index lanes) const { return {rows.row(h), lanes, dim_, heads_ * rows.stride}; }

  /// content = W_k^T (q + u),  by_distance = W_r^T (q + v), head by head: [lanes H,D].
  void turn_queries(Matrix x, Matrix content, Matrix by_distance, Scratch& scratch) const {
    const Index lanes = x.rows;
    const Matrix q = scratch.take(lanes, dim_), biased = scratch.take(lanes, dim_);
    Matrix read = x;
    if (pre_norm_) read = normalised(biased, x);
    linear_into(q, read, qkv_.weight().weight().rows(0, dim_));
    const auto add_bias = [&](const Parameter& bias) {
      for (Index b = 0; b < lanes; ++b) kernels::add(biased.row(b), q.row(b), bias.value().data(), dim_);
    };
    add_bias(*content_bias_);
    for (Index h = 0; h < heads_; ++h)
      multiply_transposed(head_of(content, h, lanes), biased.columns(h * width_, (h + 1) * width_), part(1, h));
    add_bias(*position_bias_);
    for (Index h = 0; h < heads_; ++h)
      multiply_transposed(head_of(by_distance, h, lanes), biased.columns(h * width_, (h + 1) * width_),
                          r_.weight().weight().rows(h * width_, (h + 1) * width_));
  }

  /// One lane's weights [H,n] over cached and own rows, n in all, the last one the query's.
  void weigh(Matrix weights, Matrix content, Matrix by_distance, Matrix cached, Matrix own) const {
    const Index seen = weights.cols, near = std::min(seen, reach_), far = seen - near;
    if (cached.rows > 0) blas::multiply_bt(weights.columns(0, cached.rows), content, cached);
    blas::multiply_bt(weights.columns(cached.rows, seen), content, own);
    blas::multiply_bt(weights.columns(far, seen), by_distance,
                      {table_->data() + (reach_ - near) * dim_, near, dim_, dim_}, 1);
    const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(width_)));
    const Index first = window_ > 0 ? std::max<Index>(0, seen - window_) : 0;
    for (Index h = 0; h < heads_; ++h) {
      Real* const row = weights.row(h);
      const Real farthest = far > first ? kernels::dot(by_distance.row(h), table_->data(), dim_) : Real{0};
      for (Index j = first; j < far; ++j) row[j] += farthest;
      std::fill_n(row, first, Real{0});
      kernels::softmax_row(row + first, row + first, scale, seen - first);
    }
  }

  static void mix(Matrix mixed, Matrix weights, Matrix cached, Matrix own) {
    if (cached.rows > 0) blas::multiply(mixed, weights.columns(0, cached.rows), cached);
    blas::multiply(mixed, weights.columns(cached.rows, weights.cols), own, cached.rows > 0 ? Real{1} : Real{0});
  }

  /// The last rows of [cache; open segment] become the cache, in place.
  void close_segment(State& state, Index lane) const {
    std::int64_t& cached = state.integers(kCachedRows)[static_cast<std::size_t>(lane)];
    Real* const open = state.writable(kOpen).data() + lane * segment_ * dim_;
    Real* const cache = state.writable(kCache).data() + lane * memory_ * dim_;
    const Index fresh = std::min(memory_, segment_), kept = std::min<Index>(cached, memory_ - fresh);
    std::copy(cache + (cached - kept) * dim_, cache + cached * dim_, cache);
    std::copy_n(open + (segment_ - fresh) * dim_, fresh * dim_, cache + kept * dim_);
    std::fill_n(open, segment_ * dim_, Real{0});
    cached = kept + fresh;
    state.integers(kOpenRows)[static_cast<std::size_t>(lane)] = 0;
  }

  Index dim_, segment_, heads_, width_, layer_, memory_ = 0, window_ = 0, reach_ = 0;
  bool pre_norm_ = false, read_cache_ = false;
  Linear qkv_, r_, o_;
  Parameter weight_, bias_;
  const Parameter *content_bias_ = nullptr, *position_bias_ = nullptr;
  std::shared_ptr<const Tensor> table_;  ///< of `reach_` distances; the greatest stands for all beyond
};

}  // namespace

std::unique_ptr<Mixer> make_transformer_xl(const MixerSpec& spec) { return std::make_unique<TransformerXl>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
