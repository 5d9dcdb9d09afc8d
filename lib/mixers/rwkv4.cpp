#include <algorithm>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/registry.h"
#include "mixers/rwkv_start.h"
#include "scan/token_shift.h"
#include "scan/wkv4_scan.h"
#include "tensor/kernels.h"
#include "tensor/wkv_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kLast, kNumerator, kDenominator, kOffset };

/// RWKV-4's time mixing: a fading mean of the values by channel, let through by the receptance r.
///   x^j_t = mu_j x_t + (1 - mu_j) x_{t-1};   r = sigmoid(W_r x^r),  k = W_k x^k,  v = W_v x^v;
///   y = W_o (r wkv(k, v)), with log decay w = -exp(time_decay) and bonus u = time_first (see wkv4_scan).
/// State: x_prev, aa, bb, pp, [B,D] each. Source: arXiv:2305.13048; parameters are called as in the published code.
class Rwkv4 final : public Mixer {
 public:
  explicit Rwkv4(const MixerSpec& spec) : dim_(spec.dim) {
    const double rising = rwkv_rising(spec.site), falling = rwkv_falling(spec.site);
    const Shape shift{1, 1, dim_};
    mix_k_ = undecayed(shift, rwkv_mix(dim_, falling));
    mix_v_ = undecayed(shift, rwkv_mix(dim_, falling, 0.3 * rising));
    mix_r_ = undecayed(shift, rwkv_mix(dim_, 0.5 * falling));
    decay_ = Parameter({dim_}, rwkv_decay_speed(dim_, -5, 8, 0.7 + 1.3 * rising), {true, false, 2});
    const auto zigzag = [](double i) { return std::log(0.3) + 0.5 * (std::fmod(i + 1, 3) - 1); };
    first_ = Parameter({dim_}, by_channel(zigzag), {true, false, 3});
    key_ = Linear(dim_, dim_, constant(0));
    value_ = Linear(dim_, dim_, rwkv_orthogonal(dim_, dim_));
    receptance_ = Linear(dim_, dim_, constant(0));
    output_ = Linear(dim_, dim_, constant(0));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const TokenShift shift = token_shift(tape, x, state.real(kLast), ShiftTowards::current,
                                         {{mix_k_.var()}, {mix_v_.var()}, {mix_r_.var()}}, context.layout);
    const Wkv4Output wkv = wkv4_scan(tape,
                                     {.k = key_(tape, shift.mixed[0]),
                                      .v = value_(tape, shift.mixed[1]),
                                      .log_decay = scale(tape, activate(tape, decay_.var(), Activation::exp), -1),
                                      .bonus = first_.var(),
                                      .a = state.real(kNumerator),
                                      .b = state.real(kDenominator),
                                      .p = state.real(kOffset),
                                      .keep_state = context.keep_state},
                                     context.layout);
    if (context.keep_state) {
      state.real(kLast) = shift.last;
      state.real(kNumerator) = wkv.a, state.real(kDenominator) = wkv.b, state.real(kOffset) = wkv.p;
    }
    return output_(tape, gated(tape, receptance_(tape, shift.mixed[2]), wkv.y, Activation::sigmoid));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Index lanes = x.rows, n = lanes * dim_;
    Scratch& scratch = *context.scratch;
    const Matrix k = scratch.take(lanes, dim_), v = scratch.take(lanes, dim_), r = scratch.take(lanes, dim_);
    const Matrix mixed = scratch.take(lanes, dim_), decay = scratch.take(1, dim_);
    Tensor& last = state.writable(kLast);
    const auto project = [&](Matrix out, const Linear& map, const Parameter& mix) {
      token_shift_step(mixed, x, last, ShiftTowards::current, mix.value());
      map.step(out, mixed);
    };
    project(k, key_, mix_k_), project(v, value_, mix_v_), project(r, receptance_, mix_r_);
    keep_token(last, x);
    activate_into(Activation::exp, decay.data, decay_.value().data(), dim_);
    kernels::scale(decay.data, -1, decay.data, dim_);
    Real *const a = state.writable(kNumerator).data(), *const b = state.writable(kDenominator).data();
    Real* const p = state.writable(kOffset).data();
    for (Index i = 0; i < n; i += dim_)
      wkv4_step(k.data + i, v.data + i, decay.data, first_.value().data(), {a + i, b + i, p + i}, mixed.data + i, dim_);
    kernels::gated(Activation::sigmoid, r.data, r.data, mixed.data, n);
    output_.step(y, r);
  }

  State initial_state(Index lanes) const override {
    State state;
    const Shape shape{lanes, dim_};
    for (const char* name : {"x_prev", "aa", "bb"}) state.add_real(name, "D", Tensor::zeros(shape));
    state.add_real("pp", "D", Tensor::full(shape, kernels::kWkvNothing));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    visitor("time_decay", decay_);
    visitor("time_first", first_);
    visitor("time_mix_k", mix_k_);
    visitor("time_mix_v", mix_v_);
    visitor("time_mix_r", mix_r_);
    key_.visit(visitor, "key");
    value_.visit(visitor, "value");
    receptance_.visit(visitor, "receptance");
    output_.visit(visitor, "output");
  }

  double mixing_cost(Index) const override { return 16 * static_cast<double>(dim_); }
  BlockDefaults block() const override { return rwkv_block("4"); }

 private:
  Index dim_;
  Linear key_, value_, receptance_, output_;
  Parameter decay_, first_, mix_k_, mix_v_, mix_r_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv4(const MixerSpec& spec) { return std::make_unique<Rwkv4>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
