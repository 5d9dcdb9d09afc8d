#include <algorithm>
#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_rows.h"
#include "mixers/registry.h"
#include "scan/outer_scan.h"
#include "scan/positions.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr std::uint64_t kDropoutSite = rng_site("memsizer slot dropout");

/// A linear map followed by a layer normalisation of its outputs, both with weight and (where wanted) bias.
class NormalisedLinear {
 public:
  NormalisedLinear() = default;
  NormalisedLinear(Index out, Index in, Initializer init, bool bias)
      : map_(out, in, std::move(init), bias),
        weight_(undecayed({out}, constant(1))),
        bias_(undecayed({out}, constant(0))) {}

  Var operator()(Tape& tape, const Var& x) const {
    return layer_norm(tape, map_(tape, x), weight_.var(), bias_.var(), kEpsilon);
  }
  void step(Matrix y, Matrix x) const {
    map_.step(y, x);
    const View rows{y.data, {y.rows, y.cols}};
    layer_norm_into(rows, rows, weight_.value(), bias_.value(), kEpsilon);
  }
  void visit(const ParameterVisitor& visitor, const std::string& name) {
    map_.visit(visitor, name + "_proj");
    visitor(name + "_layer_norm.weight", weight_);
    visitor(name + "_layer_norm.bias", bias_);
  }

 private:
  static constexpr double kEpsilon = 1e-5;
  Linear map_;
  Parameter weight_, bias_;
};

enum class Keys { learned, fixed, input };

/// MemSizer: M slots, whose keys do not depend on the text and whose values are what it wrote into them.
///   k_t = LN(W_l x_t) [M];  v_t = LN(W_r x_t) [D];  S_t = S_{t-1} + k_t v_t^T [M,D]
///   a_t = mean over heads h of softmax(Phi_h x_t) [M];   y_t = t^-1/2 a_t S_t.
/// All heads share the memory, and there is no output projection. t counts the tokens of the document, from 1.
/// With keys made from the input, slot m of head h has the key K_t[m] = t^-1/2 sum_s k_s[m] u_s, u = LN(W_u x), written
/// with the same weights as the values and read by the query of that head: a_t = mean softmax(q_h K_t,h^T / sqrt(D/H)).
/// State: S [B,M,D], position [B]; with keys from the input also K [B,H,D/H,M]. Source: arXiv:2203.12644.
class MemSizer final : public Mixer {
 public:
  explicit MemSizer(const MixerSpec& spec)
      : dim_(spec.dim), heads_(spec.heads > 0 ? spec.heads : kHeads), layer_(spec.site.layer) {
    Options& options = spec.options;
    code_ = options.choice("variant", "code", {"code", "paper"},
                           "code: as published, projections with biases and outputs times t^-1/2; paper: neither") ==
            "code";
    slots_ = options.integer("slots", 32, 1, "memory slots (M)");
    const std::string keys =
        options.choice("keys", "learned", {"learned", "fixed", "input"},
                       "the slots' keys: parameters, frozen random numbers, or made from the text");
    keys_ = keys == "learned" ? Keys::learned : keys == "fixed" ? Keys::fixed : Keys::input;
    const double q_gain =
        inverse_root("q_init_scale", 32, "the keys start at Xavier's gain q_init_scale^-1/2", options);
    const double kv_gain = inverse_root("kv_init_scale", 1, "W_l and W_r at kv_init_scale^-1/2", options);
    const Index rows = keys_ == Keys::input ? dim_ : heads_ * slots_;
    phi_ = Linear(
        Parameter({rows, dim_}, xavier_uniform(rows, dim_, q_gain), {keys_ != Keys::fixed, keys_ != Keys::fixed}));
    if (code_ && keys_ != Keys::fixed) phi_ = std::move(phi_).with_bias(undecayed({rows}, constant(0)));
    k_ = NormalisedLinear(slots_, dim_, xavier_uniform(slots_, dim_, kv_gain), code_);
    v_ = NormalisedLinear(dim_, dim_, xavier_uniform(dim_, dim_, kv_gain), code_);
    if (keys_ != Keys::input) return;
    head_width_ = dim_ / checked_heads(spec, heads_);
    u_ = NormalisedLinear(dim_, dim_, xavier_uniform(dim_, dim_, kv_gain), code_);
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    const Index batch = layout.batch, length = layout.length;
    const Var k = k_(tape, x).reshaped({batch, length, 1, slots_});
    const Var v = v_(tape, x).reshaped({batch, length, 1, dim_});
    std::vector<std::int64_t>& position = state.integers(kPosition);
    const Tensor shares = row_scales(layout, position);
    Var logits = phi_(tape, x);
    if (keys_ == Keys::input) {
      logits = input_logits(tape, logits, x, k, shares, layout, state);
    } else {
      logits = logits.reshaped({batch, length, heads_, slots_});
    }
    Var weights = softmax_rows(tape, logits, 1);
    if (context.training && context.dropout > 0)
      weights = dropout(tape, weights, context.dropout,
                        Rng(context.seed, context.step, kDropoutSite + static_cast<std::uint64_t>(layer_)));
    weights = mean_heads(tape, weights);
    if (code_) weights = scale_rows(tape, weights, shares);
    const OuterScanOutput out = outer_scan(
        tape, {.q = weights, .k = k, .v = v, .state = state.real(kMemory).reshaped({batch, 1, slots_, dim_})}, layout);
    state.real(kMemory) = out.state.reshaped({batch, slots_, dim_});
    advance_positions(layout, position);
    return out.y.reshaped({batch, length, dim_});
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix k = scratch.take(lanes, slots_), v = scratch.take(lanes, dim_), mean = scratch.take(lanes, slots_);
    const Matrix logits = scratch.take(lanes, heads_ * slots_);
    k_.step(k, x), v_.step(v, x);
    std::vector<std::int64_t>& position = state.integers(kPosition);
    for (std::int64_t& tokens : position) ++tokens;
    if (keys_ == Keys::input)
      step_input_logits(logits, x, k, scratch, state);
    else
      phi_.step(logits, x);
    Real* const s = state.writable(kMemory).data();
    for (Index b = 0; b < lanes; ++b) {
      const Real share = row_scale(position[static_cast<std::size_t>(b)]) / static_cast<Real>(heads_);
      kernels::fill(mean.row(b), 0, slots_);
      for (Index h = 0; h < heads_; ++h) {
        Real* const row = logits.row(b) + h * slots_;
        kernels::softmax_row(row, row, 1, slots_);
        kernels::axpy(mean.row(b), share, row, slots_);
      }
      outer_scan_step(Decay::none, mean.slice(b, b + 1), k.row(b), v.row(b), nullptr,
                      {s + b * slots_ * dim_, slots_, dim_, dim_}, nullptr, y.slice(b, b + 1), nullptr);
    }
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "M V", Tensor::zeros({lanes, slots_, dim_}));
    state.add_integer("position", lanes);
    if (keys_ == Keys::input) state.add_real("K", "H K M", Tensor::zeros({lanes, heads_, head_width_, slots_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    phi_.visit(visitor, "q_proj");
    k_.visit(visitor, "k");
    v_.visit(visitor, "v");
    if (keys_ == Keys::input) u_.visit(visitor, "u");
  }

  double mixing_cost(Index) const override {
    return static_cast<double>((keys_ == Keys::input ? 4 : 2) * slots_ * dim_);
  }
  BlockDefaults block() const override {
    return {.channel_mixer = "mlp",
            .norm = "layernorm",
            .positions = "sinusoidal",
            .tied_head = true,
            .embedding = embedding_beside_sinusoids};
  }

 private:
  enum Leaf : std::size_t { kMemory, kPosition, kKeys };
  static constexpr Index kHeads = 8;  // of the published language model

  static double inverse_root(const std::string& name, double standard, const std::string& help, Options& options) {
    const double scale = options.real(name, standard, help);
    if (!(scale > 0)) throw UsageError("--set {}={}: must be above 0", name, scale);
    return 1 / std::sqrt(scale);
  }

  /// t^-1/2 for the t-th token of a document.
  Real row_scale(std::int64_t t) const {
    return code_ ? static_cast<Real>(1 / std::sqrt(static_cast<double>(t))) : Real{1};
  }
  Tensor row_scales(const Layout& layout, const std::vector<std::int64_t>& before) const {
    const std::vector<std::int64_t> positions = token_positions(layout, before);
    Tensor scales({static_cast<Index>(positions.size())});
    std::transform(positions.begin(), positions.end(), scales.data(),
                   [&](std::int64_t before_it) { return row_scale(before_it + 1); });
    return scales;
  }

  Real query_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(head_width_))); }

  /// q_h K_t,h^T for keys that the text writes, [B,T,H,M].
  Var input_logits(Tape& tape, const Var& q, const Var& x, const Var& k, const Tensor& shares, const Layout& layout,
                   State& state) const {
    const Shape by_head{layout.batch, layout.length, heads_, head_width_};
    const Var writes = repeat_heads(tape, k.reshaped({layout.batch, layout.length, slots_}), heads_);
    const OuterScanOutput out = outer_scan(tape,
                                           {.q = scale(tape, q, query_scale()).reshaped(by_head),
                                            .k = u_(tape, x).reshaped(by_head),
                                            .v = writes,
                                            .state = state.real(kKeys)},
                                           layout);
    state.real(kKeys) = out.state;
    if (!code_) return out.y;
    return scale_rows(tape, out.y.reshaped({layout.batch, layout.length, heads_ * slots_}), shares)
        .reshaped(out.y.shape());
  }

  void step_input_logits(Matrix logits, Matrix x, Matrix k, Scratch& scratch, State& state) const {
    const Index lanes = x.rows;
    const Matrix q = scratch.take(lanes, dim_), u = scratch.take(lanes, dim_);
    phi_.step(q, x);
    u_.step(u, x);
    Real* const keys = state.writable(kKeys).data();
    for (Index b = 0; b < lanes; ++b) {
      kernels::scale(q.row(b), query_scale() * row_scale(state.integers(kPosition)[static_cast<std::size_t>(b)]),
                     q.row(b), dim_);
      for (Index h = 0; h < heads_; ++h)
        outer_scan_step(Decay::none, {q.row(b) + h * head_width_, 1, head_width_, head_width_},
                        u.row(b) + h * head_width_, k.row(b), nullptr,
                        {keys + (b * heads_ + h) * head_width_ * slots_, head_width_, slots_, slots_}, nullptr,
                        {logits.row(b) + h * slots_, 1, slots_, slots_}, nullptr);
    }
  }

  Index dim_, heads_, layer_, slots_ = 0, head_width_ = 0;
  bool code_ = true;
  Keys keys_ = Keys::learned;
  Linear phi_;
  NormalisedLinear k_, v_, u_;
};

}  // namespace

std::unique_ptr<Mixer> make_memsizer(const MixerSpec& spec) { return std::make_unique<MemSizer>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
