#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_broadcast.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_rows.h"
#include "mixers/heads.h"
#include "mixers/registry.h"
#include "mixers/short_conv_layer.h"
#include "mixers/time_step.h"
#include "scan/outer_scan.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// A = uniform in [1, 16], as its logarithm.
void start_rates(std::span<Real> values, const Rng& rng) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Real>(std::log(1 + 15 * rng.uniform(i)));
}

/// Mamba-2, a state space with one decay a head, in H heads of P channels; G groups of heads share B and C:
///   z, x, B, C, dt = W_in u;   x, B, C = silu(conv(x, B, C));   delta = softplus(dt + dt_bias) [H];   a = -e^{A_log};
///   S_t = e^{delta_t a} S_{t-1} + B_t (delta_t x_t)^T;   y_t = S_t^T C_t + D x_t;   W_out RMSNorm(y silu(z)),
/// the norm over each group's channels. State: the convolution's inputs, conv [B,W-1,d_in + 2 G N], and S, ssm
/// [B,H,N,P]. Source: arXiv:2405.21060.
class Mamba2 final : public Mixer {
 public:
  explicit Mamba2(const MixerSpec& spec) : dim_(spec.dim) {
    const Index expand = spec.options.integer("expand", 2, 1, "channels for each of the model's");
    channels_ = expand * dim_;
    read_heads(spec);
    read_states(spec);
    const Index width = spec.options.integer("d_conv", 4, 2, "width of the short convolution (W)");
    const auto by_width = [](Index in) { return uniform(1 / std::sqrt(static_cast<double>(in))); };
    in_ = Linear(channels_ + mixed() + heads_, dim_, by_width(dim_));
    conv_ = ShortConv(mixed(), width, true);
    dt_bias_ = undecayed({heads_}, time_step_biases());
    a_log_ = undecayed({heads_}, start_rates);
    skip_ = undecayed({heads_}, constant(1));
    norm_ = undecayed({channels_}, constant(1));
    eps_ = spec.options.real("norm_eps", 1e-5, "epsilon of the norm");
    out_ = Linear(dim_, channels_, uniform(1 / std::sqrt(static_cast<double>(channels_ * spec.site.layers))));
  }

  Var forward(Tape& tape, const Var& u, const Context& context, State& state) const override {
    const Index shared = groups_ * states_, before_dt = channels_ + mixed();
    const Var z = in_.rows(tape, u, 0, channels_);
    const std::vector<Var> xbc = conv_.split(tape, in_.rows(tape, u, channels_, before_dt), context.layout,
                                             state.real(0), {channels_, shared, shared});
    const Var x = split_heads(xbc[0], heads_), b = split_heads(xbc[1], groups_), c = split_heads(xbc[2], groups_);
    const Var dt = in_.rows(tape, u, before_dt, in_.out(), dt_bias_.var());
    const Var delta = activate(tape, dt, Activation::softplus);
    const Var rates = scale(tape, activate(tape, a_log_.var(), Activation::exp), -1);
    const OuterScanOutput scanned = outer_scan(tape,
                                               {.decay = Decay::scalar,
                                                .q = c,
                                                .k = b,
                                                .v = scale_rows(tape, x, delta),
                                                .log_decay = scale_columns(tape, delta, rates),
                                                .state = state.real(1)},
                                               context.layout);
    state.real(1) = scanned.state;
    const Var y = join_heads(add_scaled_heads(tape, scanned.y, x, skip_.var()));
    const Var gates = split_heads(gated(tape, z, y, Activation::silu), groups_);
    return out_(tape, join_heads(rms_norm(tape, gates, norm_.var(), eps_)));
  }

  void step(Matrix u, Matrix out, const Context& context, State& state) const override {
    const Index lanes = u.rows;
    Scratch& scratch = *context.scratch;
    const Matrix all = scratch.take(lanes, in_.out()), xbc = scratch.take(lanes, mixed());
    const Matrix y = scratch.take(lanes, channels_), delta = scratch.take(lanes, heads_);
    const Matrix room = scratch.take(1, width_);
    in_.step(all, u);
    conv_.step(xbc, all.columns(channels_, channels_ + mixed()), state.writable(0));
    for (Index i = 0; i < lanes; ++i)
      kernels::add(delta.row(i), all.row(i) + channels_ + mixed(), dt_bias_.value().data(), heads_);
    activate_into(Activation::softplus, delta.data, delta.data, lanes * heads_);
    Real* const s = state.writable(1).data();
    for (Index i = 0; i < lanes; ++i) {
      step_heads(xbc.row(i), delta.row(i), s + i * heads_ * states_ * width_, y.row(i), room.data);
      kernels::gated(Activation::silu, y.row(i), all.row(i), y.row(i), channels_);
    }
    const View rows{y.data, {lanes, groups_, channels_ / groups_}};
    rms_norm_into(rows, rows, norm_.value(), eps_);
    out_.step(out, y);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("conv", "(W-1) C", conv_.initial_state(lanes));
    state.add_real("ssm", "H N V", Tensor::zeros({lanes, heads_, states_, width_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    in_.visit(visitor, "in_proj");
    conv_.visit(visitor, "conv1d");
    visitor("dt_bias", dt_bias_);
    visitor("A_log", a_log_);
    visitor("D", skip_);
    visitor("norm.weight", norm_);
    out_.visit(visitor, "out_proj");
  }

  double mixing_cost(Index) const override {
    return static_cast<double>(2 * channels_ * states_ + mixed() * conv_.width());
  }
  BlockDefaults block() const override { return {.channel_mixer = "none", .tied_head = true}; }

 private:
  /// Channels that the convolution mixes: x, B and C.
  Index mixed() const { return channels_ + 2 * groups_ * states_; }

  /// Heads of `headdim` channels; --heads says how many, else they are 64 wide or as wide as fits.
  void read_heads(const MixerSpec& spec) {
    Index standard = 64;
    if (spec.heads > 0) {
      if (channels_ % spec.heads != 0)
        throw UsageError("--heads {}: does not divide the {} channels of mamba2; choose a divisor", spec.heads,
                         channels_);
      standard = channels_ / spec.heads;
    } else {
      while (channels_ % standard != 0) --standard;
      if (standard != 64) spec.options.note(fmt::format("mamba2: heads of {} channels, not 64", standard));
    }
    width_ = spec.options.integer("headdim", standard, 1, "channels a head (P)");
    if (channels_ % width_ != 0 || (spec.heads > 0 && width_ * spec.heads != channels_))
      throw UsageError("--set headdim={}: {} heads of {} channels are not {} channels", width_,
                       spec.heads > 0 ? spec.heads : channels_ / width_, width_, channels_);
    heads_ = channels_ / width_;
    groups_ = spec.options.integer("ngroups", 1, 1, "groups of heads that share B and C (G)");
    if (heads_ % groups_ != 0) throw UsageError("--set ngroups={}: does not divide the {} heads", groups_, heads_);
  }

  void read_states(const MixerSpec& spec) {
    const Index standard = std::min<Index>(128, dim_);
    if (standard != 128) spec.options.note(fmt::format("mamba2: d_state {}, the model's width, not 128", standard));
    states_ = spec.options.integer("d_state", standard, 1, "numbers of state a channel (N)");
  }

  /// One token of all heads.  xbc: x [H,P], B and C [G,N];  s: [H,N,P];  y: [H,P];  room: [P].
  void step_heads(Real* xbc, const Real* delta, Real* s, Real* y, Real* room) const {
    const Index size = states_ * width_;
    Real *const b = xbc + channels_, *const c = b + groups_ * states_;
    for (Index h = 0; h < heads_; ++h) {
      const Real* const x = xbc + h * width_;
      Real* const out = y + h * width_;
      const Index group = h / (heads_ / groups_) * states_;
      const Real decay = std::exp(-std::exp(a_log_.value().data()[h]) * delta[h]);
      kernels::scale(room, delta[h], x, width_);
      outer_scan_step(Decay::scalar, {c + group, 1, states_, states_}, b + group, room, &decay,
                      {s + h * size, states_, width_, width_}, nullptr, {out, 1, width_, width_}, nullptr);
      kernels::axpy(out, skip_.value().data()[h], x, width_);
    }
  }

  Index dim_, channels_ = 0, heads_ = 0, width_ = 0, groups_ = 0, states_ = 0;
  double eps_ = 1e-5;
  Linear in_, out_;
  ShortConv conv_;
  Parameter dt_bias_, a_log_, skip_, norm_;
};

}  // namespace

std::unique_ptr<Mixer> make_mamba2(const MixerSpec& spec) { return std::make_unique<Mamba2>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
