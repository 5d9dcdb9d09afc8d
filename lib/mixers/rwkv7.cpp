#include <algorithm>
#include <cmath>

#include "grad/ops_norm.h"
#include "grad/ops_rwkv7.h"
#include "mixers/heads.h"
#include "mixers/low_rank.h"
#include "mixers/registry.h"
#include "mixers/rwkv_start.h"
#include "scan/delta_scan.h"
#include "scan/token_shift.h"
#include "tensor/blend.h"
#include "tensor/kernels.h"
#include "tensor/rwkv7_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kMemory, kLast };
/// What a token is blended with the one before it for.
enum Use : std::size_t { kReceptance, kDecay, kKey, kValue, kRate, kGate, kUses };
constexpr const char* kUseNames[kUses] = {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"};

/// e^{-1/2}: log decays lie between this with a minus and 0.
const Real kStrongestDecay = static_cast<Real>(std::exp(-0.5));

/// -1 to 1 along each head, slow in its middle.
double zigzag(double channel, Index width) {
  if (width < 2) return 0;
  const double half = static_cast<double>(width - 1) / 2;
  const double z = (std::fmod(channel, static_cast<double>(width)) - half) / half;
  return z * std::abs(z);
}

/// RWKV-7's time mixing: a memory that fades by channel and, before it writes, takes out what it holds under a key.
///   x^j_t = x_t + (x_{t-1} - x_t) x_j for j = r, w, k, v, a, g;   r = W_r x^r,  k = W_k x^k,  v = W_v x^v
///   w = exp(-e^{-1/2} sigmoid(w0 + tanh(x^w w1) w2)),  a = sigmoid(a0 + x^a a1 a2),  g = sigmoid(x^g g1) g2
///   v <- v + (v_first - v) sigmoid(v0 + x^v v1 v2), v_first the values of the stack's first such layer
///   kappa = k k_k of length 1 in each head,  k <- k (1 + (a - 1) k_a)
///   S_t = (diag(w_t) - (kappa_t a_t) kappa_t^T) S_{t-1} + k_t v_t^T [K,V];   o_t = r_t S_t
///   y = W_o ((GroupNorm(o) + (sum r k r_k) v) g)
/// State: S [B,H,K,V], x_prev [B,D]. Source: arXiv:2503.14456; parameters are called as in the published code.
class Rwkv7 final : public Mixer {
 public:
  explicit Rwkv7(const MixerSpec& spec)
      : dim_(spec.dim), heads_(heads_of_size(spec, 64, "head_size", "width of a head (K = V)")), width_(dim_ / heads_) {
    norm_eps_ = spec.options.real("groupnorm_eps", 64e-5, "epsilon of the heads' norm");
    first_ = spec.site.layer == 0;
    make_shifts(spec.site);
    make_maps(spec);
    const auto along = [this](double c) { return c / static_cast<double>(std::max<Index>(1, dim_ - 1)) - 0.5; };
    const Shape channels{1, 1, dim_};
    k_k_ = undecayed(channels, by_channel([along](double c) { return 0.71 - 0.1 * along(c); }));
    k_a_ = undecayed(channels, constant(1.02));
    r_k_ = undecayed({heads_, width_}, constant(-0.04));
    const double depth = static_cast<double>(spec.site.layer + 1) / static_cast<double>(spec.site.layers);
    norm_weight_ = undecayed({dim_}, constant(std::pow(depth, 0.7)));
    norm_bias_ = undecayed({dim_}, constant(0));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    std::vector<ShiftWeight> shares;
    for (const Parameter& share : shift_) shares.push_back({share.var()});
    const TokenShift shift = token_shift(tape, x, state.real(kLast), ShiftTowards::previous, shares, context.layout);
    const auto map = [&](const auto& by, Use use) { return by(tape, shift.mixed[use]); };
    const auto sigmoid = [&](const Var& y) { return activate(tape, y, Activation::sigmoid); };

    Var v = map(value_, kValue);
    if (Carry* const carry = context.carry) {
      if (!carry->first_values.defined())
        carry->first_values = v;
      else if (!first_)
        v = blend(tape, v, carry->first_values, sigmoid(map(value_share_, kValue)));
    }
    v = split_heads(v, heads_);
    const Var r = split_heads(map(receptance_, kReceptance), heads_);
    const Var rate = split_heads(sigmoid(map(rate_, kRate)), heads_);
    const Rwkv7Keys keys = rwkv7_keys(tape, split_heads(map(key_, kKey), heads_), rate, k_k_.var(), k_a_.var());
    const DeltaScanOutput out =
        delta_scan(tape,
                   {.decay = Decay::key,
                    .q = r,
                    .k = keys.key,
                    .v = v,
                    .erase = keys.erase,
                    .write = keys.write,
                    .log_decay = split_heads(bounded_decay(tape, map(decay_, kDecay), kStrongestDecay), heads_),
                    .state = state.real(kMemory)},
                   context.layout);
    state.real(kMemory) = out.state, state.real(kLast) = shift.last;
    const Var o = group_norm(tape, join_heads(out.y), heads_, norm_weight_.var(), norm_bias_.var(), norm_eps_);
    const Var gate = split_heads(map(gate_, kGate), heads_);
    return output_(tape, join_heads(rwkv7_output(tape, {split_heads(o, heads_), r, keys.key, v, gate, r_k_.var()})));
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    Scratch& scratch = *context.scratch;
    const Index lanes = x.rows, n = lanes * dim_;
    const auto take = [&] { return scratch.take(lanes, dim_); };
    const Matrix mixed = take(), r = take(), decay = take(), k = take(), v = take(), rate = take(), gate = take();
    Tensor& last = state.writable(kLast);
    const auto shifted = [&](Use use) {
      token_shift_step(mixed, x, last, ShiftTowards::previous, shift_[use].value());
      return mixed;
    };
    receptance_.step(r, shifted(kReceptance));
    decay_.step(decay, shifted(kDecay), scratch);
    key_.step(k, shifted(kKey));
    value_.step(v, shifted(kValue));
    if (context.carry != nullptr) carry_values(v, mixed, *context.carry, scratch);
    rate_.step(rate, shifted(kRate), scratch);
    gate_.step(gate, shifted(kGate), scratch);
    keep_token(last, x);
    for (const Matrix& m : {decay, rate}) activate_into(Activation::sigmoid, m.data, m.data, n);
    kernels::scale(decay.data, -kStrongestDecay, decay.data, n);
    kernels::exp(decay.data, decay.data, n);
    const Matrix erase = take(), write = take(), key = take(), o = take();
    Real* const memory = state.writable(kMemory).data();
    for (Index at = 0; at < n; at += width_) {
      const Index channel = at % dim_;
      kernels::rwkv7_keys(erase.data + at, write.data + at, key.data + at,
                          {k.data + at, rate.data + at, k_k_.value().data() + channel, k_a_.value().data() + channel},
                          width_);
      DeltaToken token{r.data + at, key.data + at, v.data + at};
      token.erase = erase.data + at, token.write = write.data + at, token.decay_factor = decay.data + at;
      delta_scan_step(Decay::key, token, {memory + at * width_, width_, width_, width_}, o.data + at);
    }
    const View rows{o.data, {lanes, dim_}};
    group_norm_into(rows, rows, heads_, norm_weight_.value(), norm_bias_.value(), norm_eps_);
    for (Index at = 0; at < n; at += width_)
      kernels::rwkv7_output(
          mixed.data + at,
          {o.data + at, r.data + at, key.data + at, v.data + at, gate.data + at, r_k_.value().data() + at % dim_},
          width_);
    output_.step(y, mixed);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("S", "H K V", Tensor::zeros({lanes, heads_, width_, width_}));
    state.add_real("x_prev", "D", Tensor::zeros({lanes, dim_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    for (std::size_t use = 0; use < kUses; ++use) visitor(kUseNames[use], shift_[use]);
    decay_.visit(visitor, "w1", "w2");
    rate_.visit(visitor, "a1", "a2");
    if (!first_) value_share_.visit(visitor, "v1", "v2");
    gate_.visit(visitor, "g1", "g2");
    visitor("k_k", k_k_);
    visitor("k_a", k_a_);
    visitor("r_k", r_k_);
    receptance_.visit(visitor, "receptance");
    key_.visit(visitor, "key");
    value_.visit(visitor, "value");
    output_.visit(visitor, "output");
    visitor("ln_x.weight", norm_weight_);
    visitor("ln_x.bias", norm_bias_);
  }

  /// Read, fade, write twice, read again.
  double mixing_cost(Index) const override { return static_cast<double>(5 * dim_ * width_); }
  BlockDefaults block() const override { return rwkv_block("7"); }

 private:
  void make_shifts(Site site) {
    const double falling = rwkv_falling(site);
    constexpr double kExponents[kUses] = {0.2, 0.9, 0.7, 0.7, 0.9, 0.2};
    for (std::size_t use = 0; use < kUses; ++use)
      shift_[use] = undecayed({1, 1, dim_}, rwkv_maa(dim_, kExponents[use] * falling));
  }

  void make_maps(const MixerSpec& spec) {
    const double root = std::sqrt(static_cast<double>(dim_)), bound = 0.5 / root;
    receptance_ = Linear(dim_, dim_, uniform(bound));
    key_ = Linear(dim_, dim_, uniform(0.1 * bound));
    value_ = Linear(dim_, dim_, uniform(bound));
    output_ = Linear(dim_, dim_, constant(0));

    const auto rank = [&](const char* name, double factor, const char* help) {
      const auto published = std::max<Index>(32, 32 * std::lround(factor * root / 32));
      const Index fitting = std::min(published, dim_), chosen = spec.options.integer(name, fitting, 1, help);
      if (chosen == fitting && fitting < published)
        spec.options.note(fmt::format("{} {} instead of {} at width {}", name, fitting, published, dim_));
      return chosen;
    };
    const auto narrow = [&](Index wide, std::optional<Activation> middle, std::optional<Parameter> bias) {
      const double gain = std::max(1.0, std::sqrt(static_cast<double>(wide) / static_cast<double>(dim_)));
      Linear up(undecayed({dim_, wide}, orthogonal(dim_, wide, 0.1 * gain)));
      if (bias) up = std::move(up).with_bias(*bias);
      return LowRank(Linear(undecayed({wide, dim_}, constant(0))), std::move(up), middle);
    };
    const double last = static_cast<double>(std::max<Index>(1, dim_ - 1));
    const auto bias = [&](auto start, double lr_scale = 1) {
      return Parameter({dim_}, by_channel([start, last](double c) { return start(c, c / last - 0.5); }),
                       {true, false, lr_scale});
    };
    const double exponent = 1 + std::pow(rwkv_rising(spec.site), 0.3);
    const Index width = width_;
    decay_ = narrow(
        rank("decay_low_rank_dim", 2.5, "rank of the decay's map"), Activation::tanh,
        bias([=](double c, double) { return -6 + 6 * std::pow(c / last, exponent) + 0.5 + 2.5 * zigzag(c, width); },
             2));
    rate_ = narrow(rank("a_low_rank_dim", 2.5, "rank of the map of the replacement rate a"), {},
                   bias([=](double c, double along) { return -0.19 + 0.3 * zigzag(c, width) + 0.4 * along; }));
    value_share_ = narrow(rank("v_low_rank_dim", 1.7, "rank of the map of the first layer's share in the values"), {},
                          bias([](double, double along) { return 0.73 - 0.4 * along; }));
    gate_ = narrow(rank("gate_low_rank_dim", 5, "rank of the output gate's map"), Activation::sigmoid, {});
  }

  /// Hands the values of the stack's first layer up, or mixes them in.  v: [B,D];  mixed: what the values are made
  /// from.
  void carry_values(Matrix v, Matrix mixed, Carry& carry, Scratch& scratch) const {
    Matrix& carried = carry.first_values_step;
    if (carried.data == nullptr) {
      carried = v;
    } else if (!first_) {
      const Matrix share = scratch.take(v.rows, dim_), own = scratch.take(v.rows, dim_);
      const Index n = v.rows * dim_;
      value_share_.step(share, mixed, scratch);
      activate_into(Activation::sigmoid, share.data, share.data, n);
      std::copy_n(v.data, n, own.data);
      kernels::blend(v.data, own.data, carried.data, share.data, nullptr, n);
    }
  }

  Index dim_, heads_, width_;
  double norm_eps_ = 64e-5;
  bool first_ = false;  ///< of the model: there is nothing to mix into its values
  Parameter shift_[kUses];
  Linear receptance_, key_, value_, output_;
  LowRank decay_, rate_, value_share_, gate_;
  Parameter k_k_, k_a_, r_k_, norm_weight_, norm_bias_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv7(const MixerSpec& spec) { return std::make_unique<Rwkv7>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
