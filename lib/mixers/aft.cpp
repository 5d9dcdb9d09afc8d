#include <algorithm>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/registry.h"
#include "mixers/token_cache.h"
#include "scan/aft_window.h"
#include "scan/positions.h"
#include "scan/wkv4_scan.h"
#include "tensor/activation.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/wkv_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// The attention free transformer: a mean of the values so far, by channel, let through by the query.
///   y = W_o (sigmoid(q) sum_s e^{k_s + w_ts} v_s / sum_s e^{k_s + w_ts});   q, k, v = W x
/// form=simple: w = 0; state num, den, m [B,D], the true sums being num e^m and den e^m. form=full, local: position
/// biases w [N,N], or W_u W_v^T with both [N,rank], for documents of at most N tokens (local: w = 0 for t - s >=
/// window); state k, v [B,N,D], position [B] = tokens of the document so far. Source: arXiv:2105.14103.
class Aft final : public Mixer {
 public:
  explicit Aft(const MixerSpec& spec) : dim_(spec.dim), length_(spec.length) {
    Options& options = spec.options;
    const std::string form = options.choice("form", "simple", {"simple", "full", "local"},
                                            "position biases: none, between all tokens, or within a window");
    simple_ = form == "simple";
    if (form == "local")
      window_ = options.integer("window", 32, 1, "tokens between which there is a bias, the current one included");
    if (!simple_) {
      rank_ = options.integer("rank", std::min<Index>(128, length_), 0, "width of factorised biases; 0: all N x N");
      if (rank_ == length_ && rank_ < 128)
        options.note(fmt::format("aft: rank {} in place of 128, as the length is", length_));
    }
    const bool bias = options.flag("bias", false, "the projections have biases");
    for (Linear* map : {&q_, &k_, &v_, &o_}) *map = Linear(dim_, dim_, normal(0.02), bias);
    for (Parameter* factor : {&u_, &w_}) *factor = Parameter({length_, rank_}, normal(0.1), {.by_position = true});
    if (rank_ == 0) w_ = Parameter({length_, length_}, normal(0.01), {.by_position = true});
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Var k = k_(tape, x), v = v_(tape, x);
    const Var y = simple_ ? forward_simple(tape, k, v, context, state) : forward_biased(tape, k, v, context, state);
    return o_(tape, gated(tape, q_(tape, x), y, Activation::sigmoid));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows;
    Scratch& scratch = *context.scratch;
    const Matrix q = scratch.take(lanes, dim_), k = scratch.take(lanes, dim_), v = scratch.take(lanes, dim_);
    const Matrix mean = scratch.take(lanes, dim_);
    q_.step(q, x), k_.step(k, x), v_.step(v, x);
    if (simple_)
      step_simple(k, v, mean, state);
    else
      step_biased(k, v, mean, scratch, state);
    kernels::gated(Activation::sigmoid, q.data, q.data, mean.data, lanes * dim_);
    o_.step(y, q);
  }

  State initial_state(Index lanes) const override {
    State state;
    if (simple_) {
      for (const char* name : {"num", "den"}) state.add_real(name, "D", Tensor::zeros({lanes, dim_}));
      state.add_real("m", "D", Tensor::full({lanes, dim_}, kernels::kWkvNothing));
    } else {
      for (const char* name : {"k", "v"}) state.add_real(name, "N D", Tensor::zeros({lanes, length_, dim_}));
      state.add_integer("position", lanes);
    }
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    q_.visit(visitor, "to_q");
    k_.visit(visitor, "to_k");
    v_.visit(visitor, "to_v");
    o_.visit(visitor, "project");
    if (simple_) return;
    if (rank_ > 0) visitor("wbias_u", u_);
    visitor(rank_ > 0 ? "wbias_v" : "wbias", w_);
  }

  Memory memory() const override { return simple_ ? Memory::fixed : Memory::fixed_length; }
  double mixing_cost(Index length) const override {
    const Index seen = simple_ ? 4 : std::min(length, length_);
    return static_cast<double>(2 * dim_ * seen + (simple_ ? 0 : seen * rank_));
  }

 private:
  enum Leaf : std::size_t { kKeys, kValues, kPosition };

  static Var forward_simple(Tape& tape, const Var& k, const Var& v, const Context& context, State& state) {
    const Wkv4Output out = wkv4_scan(
        tape,
        {.k = k, .v = v, .a = state.real(0), .b = state.real(1), .p = state.real(2), .keep_state = context.keep_state},
        context.layout);
    if (context.keep_state) state.real(0) = out.a, state.real(1) = out.b, state.real(2) = out.p;
    return out.y;
  }

  Var forward_biased(Tape& tape, const Var& k, const Var& v, const Context& context, State& state) const {
    const TokenCache cache(context.layout, state.integers(kPosition));
    AftWindowInput in{.past = cache.past(), .window = window_};
    in.k = cache.join(tape, state.real(kKeys), k), in.v = cache.join(tape, state.real(kValues), v);
    in.bias = rank_ > 0 ? linear(tape, u_.var(), w_.var()) : w_.var();
    const Var y = aft_window(tape, in, context.layout);
    if (context.keep_state) {
      state.real(kKeys) = cache.keep(tape, in.k, length_), state.real(kValues) = cache.keep(tape, in.v, length_);
      state.integers(kPosition) = cache.after();
    }
    return y;
  }

  void step_simple(Matrix k, Matrix v, Matrix y, State& state) const {
    Real *const a = state.writable(0).data(), *const b = state.writable(1).data(), *const p = state.writable(2).data();
    for (Index i = 0; i < k.rows * dim_; i += dim_)
      wkv4_step(k.data + i, v.data + i, nullptr, nullptr, {a + i, b + i, p + i}, y.data + i, dim_);
  }

  void step_biased(Matrix k, Matrix v, Matrix y, Scratch& scratch, State& state) const {
    std::vector<std::int64_t>& position = state.integers(kPosition);
    require_within("aft", position, length_);
    const Matrix bias = scratch.take(1, length_), room = scratch.take(3, dim_);
    Real *const keys = state.writable(kKeys).data(), *const values = state.writable(kValues).data();
    for (Index b = 0; b < k.rows; ++b) {
      const Index at = position[static_cast<std::size_t>(b)]++, lane = b * length_ * dim_;
      std::copy_n(k.row(b), dim_, keys + lane + at * dim_);
      std::copy_n(v.row(b), dim_, values + lane + at * dim_);
      bias_row(at, bias.data);
      aft_window_step({keys + lane, at + 1, dim_, dim_}, {values + lane, at + 1, dim_, dim_}, bias.data, y.row(b),
                      room.data);
    }
  }

  /// The biases of position t with those up to it.
  void bias_row(Index t, Real* row) const {
    const Index beyond = window_ == 0 ? 0 : std::max<Index>(0, t + 1 - window_), within = t + 1 - beyond;
    std::fill_n(row, beyond, Real{0});
    if (rank_ == 0)
      std::copy_n(w_.value().data() + t * length_ + beyond, within, row + beyond);
    else
      blas::multiply_vector(row + beyond, w_.value().matrix().slice(beyond, t + 1), u_.value().data() + t * rank_);
  }

  Index dim_, length_, window_ = 0, rank_ = 0;
  bool simple_ = true;
  Linear q_, k_, v_, o_;
  Parameter u_, w_;
};

}  // namespace

std::unique_ptr<Mixer> make_aft(const MixerSpec& spec) { return std::make_unique<Aft>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
