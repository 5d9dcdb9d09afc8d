#include "mixers/registry.h"
#include "mixers/rwkv_heads.h"
#include "scan/token_shift.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

enum Leaf : std::size_t { kMemory, kLast };
/// What a token is blended with the one before it for; the gate comes last.
enum Use : std::size_t { kReceptance, kKey, kValue, kGate, kUses };
constexpr std::array<const char*, kUses> kUseNames{"time_mix_r", "time_mix_k", "time_mix_v", "time_mix_g"};

/// y[h, c] = x[h]: [H] -> [H,width].
Var spread(Tape& tape, const Var& x, Index width) {
  const OpScope op_scope("bonus");
  const Tensor y({x.extent(0), width});
  for (Index h = 0; h < x.extent(0); ++h) kernels::fill(y.matrix().row(h), x.value().data()[h], width);
  return tape.record(y, {&x}, [slot = x.gradient(), width](const Tensor& dy) {
    const Tensor dx(slot->shape());
    for (Index h = 0; h < dx.count(); ++h) dx.data()[h] = kernels::sum(dy.data() + h * width, width);
    slot->add(dx);
  });
}

/// RWKV-5's time mixing ("Eagle"): heads (see RwkvHeads) over tokens blended with those before them,
///   x^j_t = mu_j x_t + (1 - mu_j) x_{t-1},   with log decay g = -exp(time_decay), the same for every token.
/// In version 5.2 decay and bonus are of every channel of the keys. In 5.1 they are one number a head, with the bonus
/// exp(time_first), and there is no gate; r3r2, which came in between, has 5.1's decays, a gate and a plain bonus.
/// State: S [B,H,K,V], x_prev [B,D]. Source: arXiv:2404.05892; parameters are called as in the published code.
class Rwkv5 final : public Mixer {
 public:
  explicit Rwkv5(const MixerSpec& spec)
      : dim_(spec.dim),
        version_(spec.options.choice("version", "5.2", {"5.2", "r3r2", "5.1"}, "which of the published versions")),
        core_(spec, version_ != "5.1") {
    const double rising = rwkv_rising(spec.site), falling = rwkv_falling(spec.site);
    const std::array<Initializer, kUses> starts{rwkv_mix(dim_, 0.5 * falling), rwkv_mix(dim_, falling),
                                                rwkv_mix(dim_, falling, 0.3 * rising), rwkv_mix(dim_, 0.5 * falling)};
    for (std::size_t use = 0; use < uses(); ++use) mix_[use] = undecayed({1, 1, dim_}, starts[use]);
    const bool by_head = version_ != "5.2";
    const Index count = by_head ? core_.heads() : dim_;
    const Shape shape = by_head ? Shape{count} : Shape{core_.heads(), core_.width()};
    const double low = version_ == "5.1" ? -8 : -6, span = version_ == "5.1" ? 7 : 5;
    decay_ = Parameter(shape, rwkv_decay_speed(count, low, span, 0.7 + 1.3 * rising), {true, false, 2});
    if (version_ == "5.1")
      bonus_ = Parameter(shape, constant(-3), {true, false, 3});
    else
      bonus_ = undecayed(shape, rwkv_bonus(count, rising));
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    std::vector<ShiftWeight> weights;
    for (std::size_t use = 0; use < uses(); ++use) weights.push_back({mix_[use].var()});
    const TokenShift shift = token_shift(tape, x, state.real(kLast), ShiftTowards::current, weights, context.layout);
    Var bonus = bonus_.var();
    if (version_ == "5.1") bonus = activate(tape, bonus, Activation::exp);
    if (version_ != "5.2") bonus = spread(tape, bonus, core_.width());
    const RwkvHeads::Inputs in{.r = shift.mixed[kReceptance],
                               .k = shift.mixed[kKey],
                               .v = shift.mixed[kValue],
                               .g = has_gate() ? shift.mixed[kGate] : Var(),
                               .decay = decay_kind(),
                               .log_decay = scale(tape, activate(tape, decay_.var(), Activation::exp), -1),
                               .bonus = bonus};
    const Var y = core_(tape, in, state.real(kMemory), context.layout);
    state.real(kLast) = shift.last;
    return y;
  }

  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    Scratch& scratch = *context.scratch;
    const Index heads = core_.heads(), width = core_.width(), decays = decay_.shape().count();
    Tensor& last = state.writable(kLast);
    std::array<Matrix, kUses> mixed{};
    for (std::size_t use = 0; use < uses(); ++use) {
      mixed[use] = scratch.take(x.rows, dim_);
      token_shift_step(mixed[use], x, last, ShiftTowards::current, mix_[use].value());
    }
    keep_token(last, x);
    const Matrix factors = scratch.take(1, decays), bonus = scratch.take(heads, width);
    kernels::exp(factors.data, decay_.value().data(), decays);
    kernels::scale(factors.data, -1, factors.data, decays);
    kernels::exp(factors.data, factors.data, decays);
    const Real* const u = bonus_.value().data();
    for (Index h = 0; h < heads; ++h)
      for (Index c = 0; c < width; ++c)
        bonus(h, c) = version_ == "5.2" ? u[h * width + c] : version_ == "5.1" ? std::exp(u[h]) : u[h];
    core_.step(y,
               {.r = mixed[kReceptance],
                .k = mixed[kKey],
                .v = mixed[kValue],
                .g = mixed[kGate],
                .decay = decay_kind(),
                .factors = factors.data,
                .decay_width = decays / heads,
                .decay_stride = 0,
                .bonus = bonus.data},
               state.writable(kMemory), scratch);
  }

  State initial_state(Index lanes) const override {
    State state;
    core_.add_state(state, lanes);
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    for (std::size_t use = 0; use < uses(); ++use) visitor(kUseNames[use], mix_[use]);
    visitor("time_decay", decay_);
    visitor(version_ == "5.1" ? "time_first" : "time_faaaa", bonus_);
    core_.visit(visitor);
  }

  double mixing_cost(Index) const override { return core_.mixing_cost(); }
  BlockDefaults block() const override {
    BlockDefaults block = rwkv_block("4");
    block.channel_options["dim_ffn"] = std::to_string(std::max<Index>(32, dim_ * 7 / 2 / 32 * 32));
    return block;
  }

 private:
  bool has_gate() const { return version_ != "5.1"; }
  std::size_t uses() const { return has_gate() ? kUses : kGate; }
  Decay decay_kind() const { return version_ == "5.2" ? Decay::key : Decay::scalar; }

  Index dim_;
  std::string version_;
  RwkvHeads core_;
  std::array<Parameter, kUses> mix_;
  Parameter decay_, bonus_;
};

}  // namespace

std::unique_ptr<Mixer> make_rwkv5(const MixerSpec& spec) { return std::make_unique<Rwkv5>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
