#include <algorithm>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/registry.h"
#include "mixers/rwkv_start.h"
#include "scan/token_shift.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// RWKV's channel mixing, over the token and the one before it:
///   versions 4 to 6:  y = sigmoid(W_r x^r) W_v relu(W_k x^k)^2;   version 7:  y = W_v relu(W_k x^k)^2.
/// x^j blends the two tokens: mu_j x_t + (1 - mu_j) x_{t-1} in version 4 (and 5), x_t + (x_{t-1} - x_t) maa_j from 6
/// on. State: x_prev [B,D]. Sources: arXiv:2305.13048, arXiv:2404.05892, arXiv:2503.14456.
class RwkvChannel final : public Mixer {
 public:
  explicit RwkvChannel(const MixerSpec& spec) : dim_(spec.dim) {
    const std::string version =
        spec.options.choice("version", "4", {"4", "6", "7"}, "version of RWKV; 5 is as 4, but for its width");
    old_ = version == "4", receptive_ = version != "7";
    const Index published = version == "6" ? std::max<Index>(32, dim_ * 7 / 2 / 32 * 32) : 4 * dim_;
    hidden_ = spec.options.integer("dim_ffn", published, 1, "width between key and value");
    const double falling = rwkv_falling(spec.site), exponent = receptive_ ? falling : std::pow(falling, 4);
    const Initializer start = old_ ? rwkv_mix(dim_, exponent) : rwkv_maa(dim_, exponent);
    mix_k_ = undecayed({1, 1, dim_}, start);
    const double bound = 0.5 / std::sqrt(static_cast<double>(dim_));
    key_ = Linear(hidden_, dim_, receptive_ ? rwkv_orthogonal(hidden_, dim_) : uniform(bound));
    value_ = Linear(dim_, hidden_, constant(0));
    if (!receptive_) return;
    mix_r_ = undecayed({1, 1, dim_}, start);
    receptance_ = Linear(dim_, dim_, constant(0));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    std::vector<ShiftWeight> weights{{mix_k_.var()}};
    if (receptive_) weights.push_back({mix_r_.var()});
    const TokenShift shift = token_shift(tape, x, state.real(0), towards(), weights, context.layout);
    if (context.keep_state) state.real(0) = shift.last;
    const Var y = value_(tape, activate(tape, key_(tape, shift.mixed[0]), Activation::relu2));
    return receptive_ ? gated(tape, receptance_(tape, shift.mixed[1]), y, Activation::sigmoid) : y;
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    const Matrix mixed = context.scratch->take(x.rows, dim_), h = context.scratch->take(x.rows, hidden_);
    Tensor& last = state.writable(0);
    token_shift_step(mixed, x, last, towards(), mix_k_.value());
    key_.step(h, mixed);
    activate_into(Activation::relu2, h.data, h.data, h.rows * h.cols);
    value_.step(y, h);
    if (receptive_) {
      const Matrix r = context.scratch->take(x.rows, dim_);
      token_shift_step(mixed, x, last, towards(), mix_r_.value());
      receptance_.step(r, mixed);
      kernels::gated(Activation::sigmoid, y.data, r.data, y.data, y.rows * y.cols);
    }
    keep_token(last, x);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("x_prev", "D", Tensor::zeros({lanes, dim_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    const std::string mix = old_ ? "time_mix_" : receptive_ ? "time_maa_" : "x_";
    visitor(mix + "k", mix_k_);
    if (receptive_) visitor(mix + "r", mix_r_);
    key_.visit(visitor, "key");
    if (receptive_) receptance_.visit(visitor, "receptance");
    value_.visit(visitor, "value");
  }

  double mixing_cost(Index) const override { return static_cast<double>((receptive_ ? 2 : 1) * dim_); }

 private:
  ShiftTowards towards() const { return old_ ? ShiftTowards::current : ShiftTowards::previous; }

  Index dim_, hidden_ = 0;
  bool old_ = true, receptive_ = true;
  Linear key_, value_, receptance_;
  Parameter mix_k_, mix_r_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv_channel(const MixerSpec& spec) { return std::make_unique<RwkvChannel>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
