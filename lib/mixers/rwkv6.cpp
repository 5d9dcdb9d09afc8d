#include "base/blocks.h"
#include "mixers/low_rank.h"
#include "mixers/registry.h"
#include "mixers/rwkv_heads.h"
#include "scan/token_shift.h"
#include "tensor/blas.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kMemory, kLast };
/// What a token is blended with the one before it for, in the order of time_maa_w2.
enum Use : std::size_t { kDecay, kKey, kValue, kReceptance, kGate, kUses };
constexpr std::array<const char*, kUses> kUseNames{"time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r",
                                                   "time_maa_g"};
constexpr Index kRowBlock = 64;

/// y_j = z_j W_j for each of the n parts of z [..,n R]: W [n,R,D], y_j [..,D].
std::vector<Var> part_products(Tape& tape, const Var& z, const Var& weight) {
  const OpScope op_scope("part products");
  const Index parts = weight.extent(0), rank = weight.extent(1), dim = weight.extent(2);
  const auto part = [rank](Matrix x, std::size_t j) {
    return x.columns(static_cast<Index>(j) * rank, static_cast<Index>(j + 1) * rank);
  };
  const auto matrix = [rank](Matrix w, std::size_t j) {
    return w.slice(static_cast<Index>(j) * rank, static_cast<Index>(j + 1) * rank);
  };
  const Matrix from = z.value().matrix(), by = weight.value().matrix();
  Shape shape = z.shape();
  shape[-1] = dim;
  std::vector<Tensor> y;
  for (std::size_t j = 0; j < static_cast<std::size_t>(parts); ++j) {
    y.emplace_back(shape);
    blas::multiply(y[j].matrix(), part(from, j), matrix(by, j));
  }
  return tape.record_all(std::move(y), {&z, &weight},
                         [z = z.value(), w = weight.value(), dz = z.gradient(), dw = weight.gradient(), part, matrix,
                          parts, rank](std::span<Tensor> dy) {
                           const Tensor gz = Tensor::zeros(z.shape());
                           for (std::size_t j = 0; j < dy.size(); ++j) {
                             if (!dy[j].defined()) continue;
                             blas::multiply_bt(part(gz.matrix(), j), dy[j].matrix(), matrix(w.matrix(), j));
                             if (!dw) continue;
                             if (dw->empty()) dw->add(Tensor::zeros(w.shape()));
                             const Matrix gw = dw->target(parts * rank, w.extent(2)).first;
                             blas::multiply_at(matrix(gw, j), part(z.matrix(), j), dy[j].matrix(), 1);
                           }
                           add_gradient(dz, gz);
                         });
}

/// g = -exp(w + w_0), w [..,D], w_0 of D numbers.
void log_decay_row(Real* g, const Real* w, const Real* start, Index n) {
  kernels::add(g, w, start, n);
  kernels::exp(g, g, n);
  kernels::scale(g, -1, g, n);
}

Var log_decay(Tape& tape, const Var& w, const Var& start) {
  const OpScope op_scope("log decay");
  const Matrix rows = w.value().matrix();
  const Tensor g(w.shape());
  for_blocks(rows.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) log_decay_row(g.matrix().row(r), rows.row(r), start.value().data(), rows.cols);
  });
  return tape.record(g, {&w, &start}, [g, dw = w.gradient(), dstart = start.gradient()](Tensor dg) {
    const Tensor& d = dg.unique();
    for_blocks(d.count(), kElementBlock, [&](Index begin, Index end) {
      kernels::multiply(d.data() + begin, d.data() + begin, g.data() + begin, end - begin);
    });
    if (dstart) {
      const Tensor sum = Tensor::zeros(dstart->shape());
      add_column_sums(sum.data(), d.matrix());
      dstart->add(sum);
    }
    add_gradient(dw, d);
  });
}

/// RWKV-6's time mixing ("Finch"): RWKV-5's heads (see RwkvHeads), where the token itself says how it is blended with
/// the one before it, and how the memory fades. With delta = x_{t-1} - x_t:
///   z = tanh(W_1 (x + delta maa_x)) in five parts;   x^j = x + delta (maa_j + z_j W_2j), j = w, k, v, r, g;
///   log decay g = -exp(time_decay + W_d2 tanh(W_d1 x^w)).
/// State: S [B,H,K,V], x_prev [B,D]. Source: arXiv:2404.05892; parameters are called as in the published code.
class Rwkv6 final : public Mixer {
 public:
  explicit Rwkv6(const MixerSpec& spec) : dim_(spec.dim), core_(spec, true) {
    const Index mix_rank = spec.options.integer("mix_low_rank_dim", 32, 1, "rank of the maps that set the blends");
    const Index decay_rank = spec.options.integer("decay_low_rank_dim", 64, 1, "rank of the decay's map");
    const double rising = rwkv_rising(spec.site), falling = rwkv_falling(spec.site);
    const Shape channels{1, 1, dim_};
    const std::array<Initializer, kUses> starts{rwkv_maa(dim_, falling), rwkv_maa(dim_, falling),
                                                rwkv_maa(dim_, falling, 0.3 * rising), rwkv_maa(dim_, 0.5 * falling),
                                                rwkv_maa(dim_, 0.5 * falling)};
    for (std::size_t use = 0; use < kUses; ++use) maa_[use] = undecayed(channels, starts[use]);
    maa_x_ = undecayed(channels, rwkv_maa(dim_, falling));
    const Index parts = kUses;
    maa_down_ = Linear(undecayed({parts * mix_rank, dim_}, constant(0)));
    maa_up_ = undecayed({parts, mix_rank, dim_}, uniform(0.01));
    decay_ = Parameter(channels, rwkv_decay_speed(dim_, -6, 5, 0.7 + 1.3 * rising), {true, false, 2});
    decay_map_ = LowRank(Linear(undecayed({decay_rank, dim_}, constant(0))),
                         Linear(undecayed({dim_, decay_rank}, uniform(0.01))), Activation::tanh);
    bonus_ = undecayed({core_.heads(), core_.width()}, rwkv_bonus(dim_, rising));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const Layout& layout = context.layout;
    const Var first =
        token_shift(tape, x, state.real(kLast), ShiftTowards::previous, {{maa_x_.var()}}, layout).mixed[0];
    const Var z = activate(tape, maa_down_(tape, first), Activation::tanh);
    const std::vector<Var> offsets = part_products(tape, z, maa_up_.var());
    std::vector<ShiftWeight> weights;
    for (std::size_t use = 0; use < kUses; ++use) weights.push_back({maa_[use].var(), offsets[use]});
    const TokenShift shift = token_shift(tape, x, state.real(kLast), ShiftTowards::previous, weights, layout);
    const Var w = log_decay(tape, decay_map_(tape, shift.mixed[kDecay]), decay_.var());
    const RwkvHeads::Inputs in{.r = shift.mixed[kReceptance],
                               .k = shift.mixed[kKey],
                               .v = shift.mixed[kValue],
                               .g = shift.mixed[kGate],
                               .decay = Decay::key,
                               .log_decay = split_heads(w, core_.heads()),
                               .bonus = bonus_.var()};
    const Var y = core_(tape, in, state.real(kMemory), layout);
    state.real(kLast) = shift.last;
    return y;
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    Scratch& scratch = *context.scratch;
    const Index lanes = x.rows, rank = maa_up_.shape()[1];
    Tensor& last = state.writable(kLast);
    const Matrix offset = scratch.take(lanes, dim_), z = scratch.take(lanes, maa_down_.out());
    std::array<Matrix, kUses> mixed{};
    token_shift_step(offset, x, last, ShiftTowards::previous, maa_x_.value());
    maa_down_.step(z, offset);
    activate_into(Activation::tanh, z.data, z.data, lanes * z.cols);
    for (std::size_t use = 0; use < kUses; ++use) {
      const auto at = static_cast<Index>(use) * rank;
      mixed[use] = scratch.take(lanes, dim_);
      blas::multiply(offset, z.columns(at, at + rank), maa_up_.value().matrix().slice(at, at + rank));
      token_shift_step(mixed[use], x, last, ShiftTowards::previous, maa_[use].value(), offset);
    }
    keep_token(last, x);
    const Matrix factors = scratch.take(lanes, dim_);
    decay_map_.step(factors, mixed[kDecay], scratch);
    for (Index b = 0; b < lanes; ++b) log_decay_row(factors.row(b), factors.row(b), decay_.value().data(), dim_);
    kernels::exp(factors.data, factors.data, lanes * dim_);
    core_.step(y,
               {.r = mixed[kReceptance],
                .k = mixed[kKey],
                .v = mixed[kValue],
                .g = mixed[kGate],
                .decay = Decay::key,
                .factors = factors.data,
                .decay_width = core_.width(),
                .decay_stride = dim_,
                .bonus = bonus_.value().data()},
               state.writable(kMemory), scratch);
  }

  State initial_state(Index lanes) const override {
    State state;
    core_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    visitor("time_maa_x", maa_x_);
    for (std::size_t use = 0; use < kUses; ++use) visitor(kUseNames[use], maa_[use]);
    maa_down_.visit(visitor, "time_maa_w1");
    visitor("time_maa_w2", maa_up_);
    visitor("time_decay", decay_);
    decay_map_.visit(visitor, "time_decay_w1", "time_decay_w2");
    visitor("time_faaaa", bonus_);
    core_.visit(visitor);
  }

  double mixing_cost(Index) const override { return core_.mixing_cost(); }
  BlockDefaults block() const override { return rwkv_block("6"); }

 private:
  Index dim_;
  RwkvHeads core_;
  std::array<Parameter, kUses> maa_;
  Parameter maa_x_, maa_up_, decay_, bonus_;
  Linear maa_down_;
  LowRank decay_map_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv6(const MixerSpec& spec) { return std::make_unique<Rwkv6>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
