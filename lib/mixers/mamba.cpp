#include <cmath>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_shape.h"
#include "mixers/registry.h"
#include "mixers/short_conv_layer.h"
#include "mixers/time_step.h"
#include "scan/diagonal_scan.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// log(1), .., log(N) for every channel.
Initializer log_counts(Index states) {
  return [states](std::span<Real> values, const Rng&) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Real>(std::log(static_cast<double>(static_cast<Index>(i) % states + 1)));
  };
}

/// Mamba, a state space whose step sizes and maps in and out are read from the input, C = expand D channels of N
/// numbers:
///   x, z = W_in u;   x' = silu(conv(x));   dt, B, C = W_x x';   delta = softplus(W_dt dt + b_dt);   A = -e^{A_log};
///   h_t = e^{delta_t A} h_{t-1} + delta_t x'_t B_t;   y_t = h_t C_t + D x'_t;   W_out (y silu(z)).
/// State: the convolution's inputs, conv [B,W-1,C], and h, ssm [B,C,N]. Source: arXiv:2312.00752.
class Mamba final : public Mixer {
 public:
  explicit Mamba(const MixerSpec& spec) : dim_(spec.dim) {
    states_ = spec.options.integer("d_state", 16, 1, "numbers of state a channel (N)");
    const Index width = spec.options.integer("d_conv", 4, 2, "width of the short convolution (W)");
    channels_ = dim_ * spec.options.integer("expand", 2, 1, "channels for each of the model's");
    rank_ = spec.options.integer("dt_rank", (dim_ + 15) / 16, 1, "rank of the step sizes; a sixteenth of the width");
    const auto by_width = [](Index in) { return uniform(1 / std::sqrt(static_cast<double>(in))); };
    in_ = Linear(2 * channels_, dim_, by_width(dim_));
    conv_ = ShortConv(channels_, width, true);
    x_ = Linear(rank_ + 2 * states_, channels_, by_width(channels_));
    dt_ = Linear(channels_, rank_, by_width(rank_));
    dt_bias_ = undecayed({channels_}, time_step_biases());
    a_log_ = undecayed({channels_, states_}, log_counts(states_));
    skip_ = undecayed({channels_}, constant(1));
    out_ = Linear(dim_, channels_, uniform(1 / std::sqrt(static_cast<double>(channels_ * spec.site.layers))));
  }

  Var forward(Tape& tape, const Var& u, const Context& context, State& state) const override {
    const Var x = conv_(tape, in_.rows(tape, u, 0, channels_), context.layout, state.real(0));
    const Var z = in_.rows(tape, u, channels_, 2 * channels_);
    const std::vector<Var> read = split_columns(tape, x_(tape, x), {rank_, states_, states_});
    const Var delta = activate(tape, dt_(tape, read[0], dt_bias_.var()), Activation::softplus);
    const Var a = scale(tape, activate(tape, a_log_.var(), Activation::exp), -1);
    const DiagonalScanOutput scanned = diagonal_scan(
        tape, {.u = x, .delta = delta, .a = a, .b = read[1], .c = read[2], .skip = skip_.var(), .state = state.real(1)},
        context.layout);
    state.real(1) = scanned.state;
    return out_(tape, gated(tape, z, scanned.y, Activation::silu));
  }

  void step(Matrix u, Matrix y, const Context& context, State& state) const override {
    const Index lanes = u.rows;
    Scratch& scratch = *context.scratch;
    const Matrix xz = scratch.take(lanes, 2 * channels_), x = scratch.take(lanes, channels_);
    const Matrix read = scratch.take(lanes, rank_ + 2 * states_), delta = scratch.take(lanes, channels_);
    const Matrix dt = scratch.take(lanes, rank_), a = scratch.take(channels_, states_);
    in_.step(xz, u);
    conv_.step(x, xz.columns(0, channels_), state.writable(0));
    x_.step(read, x);
    for (Index b = 0; b < lanes; ++b) std::copy_n(read.row(b), rank_, dt.row(b));
    dt_.step(delta, dt, dt_bias_.value());
    activate_into(Activation::softplus, delta.data, delta.data, lanes * channels_);
    kernels::exp(a.data, a_log_.value().data(), channels_ * states_);
    kernels::scale(a.data, -1, a.data, channels_ * states_);
    diagonal_scan_step(x, x, delta, a.data, read.columns(rank_, rank_ + states_),
                       read.columns(rank_ + states_, rank_ + 2 * states_), skip_.value().data(), state.writable(1));
    for (Index b = 0; b < lanes; ++b)
      kernels::gated(Activation::silu, x.row(b), xz.row(b) + channels_, x.row(b), channels_);
    out_.step(y, x);
  }

  State initial_state(Index lanes) const override {
    State state;
    state.add_real("conv", "(W-1) C", conv_.initial_state(lanes));
    state.add_real("ssm", "C N", Tensor::zeros({lanes, channels_, states_}));
    return state;
  }

  void visit(const ParameterVisitor& visitor) override {
    in_.visit(visitor, "in_proj");
    conv_.visit(visitor, "conv1d");
    x_.visit(visitor, "x_proj");
    dt_.visit(visitor, "dt_proj");
    visitor("dt_proj.bias", dt_bias_);
    visitor("A_log", a_log_);
    visitor("D", skip_);
    out_.visit(visitor, "out_proj");
  }

  double mixing_cost(Index) const override { return static_cast<double>(channels_ * (3 * states_ + conv_.width())); }
  BlockDefaults block() const override { return {.channel_mixer = "none", .tied_head = true}; }

 private:
  Index dim_, states_ = 0, channels_ = 0, rank_ = 0;
  Linear in_, x_, dt_, out_;
  ShortConv conv_;
  Parameter dt_bias_, a_log_, skip_;
};

}  // namespace

std::unique_ptr<Mixer> make_mamba(const MixerSpec& spec) { return std::make_unique<Mamba>(spec); }

}  // namespace quipu::inline QUIPU_REAL_NS
