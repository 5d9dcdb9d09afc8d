#include "models/block.h"

#include <algorithm>

#include "grad/ops_pointwise.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr std::uint64_t kResidualSite = rng_site("residual dropout");

Var dropped(Tape& tape, const Var& x, const Context& context, Index site) {
  if (!context.training || context.dropout == 0) return x;
  return dropout(tape, x, context.dropout,
                 Rng(context.seed, context.step, kResidualSite + static_cast<std::uint64_t>(site)));
}

}  // namespace

Block::Block(std::unique_ptr<Mixer> mixer, std::unique_ptr<Mixer> channel, const BlockNorm& norm, Index dim,
             Index layer)
    : mixer_(std::move(mixer)), channel_(std::move(channel)), post_(norm.post), layer_(layer) {
  if (!mixer_->owns_residual()) mixer_norm_ = Norm(norm.kind, dim, norm.eps);
  if (channel_) channel_norm_ = Norm(norm.kind, dim, norm.eps);
}

Var Block::forward(Tape& tape, Index line, const Var& x, const Context& context, State& state) const {
  const Mixer& f = line == 0 ? *mixer_ : *channel_;
  const Norm& norm = line == 0 ? mixer_norm_ : channel_norm_;
  if (f.owns_residual()) return f.forward(tape, x, context, state);
  const Var change = f.forward(tape, post_ ? x : norm(tape, x), context, state);
  const Var sum = add(tape, x, dropped(tape, change, context, 2 * layer_ + line));
  return post_ ? norm(tape, sum) : sum;
}

void Block::step_line(const Mixer& f, const Norm& norm, Matrix x, const Context& context, State& state) const {
  const Matrix out = context.scratch->take(x.rows, x.cols);
  if (f.owns_residual()) {
    f.step(x, out, context, state);
    std::copy_n(out.data, x.rows * x.cols, x.data);
    return;
  }
  if (post_) {
    f.step(x, out, context, state);
    kernels::add_into(x.data, out.data, x.rows * x.cols);
    norm.step(x, x);
    return;
  }
  const Matrix normed = context.scratch->take(x.rows, x.cols);
  norm.step(normed, x);
  f.step(normed, out, context, state);
  kernels::add_into(x.data, out.data, x.rows * x.cols);
}

void Block::step(Matrix x, const Context& context, State& mixer_state, State& channel_state) const {
  {
    const OpScope op_scope("token mixing");
    step_line(*mixer_, mixer_norm_, x, context, mixer_state);
  }
  if (!channel_) return;
  const OpScope op_scope("channel mixing");
  step_line(*channel_, channel_norm_, x, context, channel_state);
}

void Block::visit(const ParameterVisitor& visitor) {
  if (!mixer_->owns_residual()) mixer_norm_.visit(visitor, "mixer_norm");
  mixer_->visit(visitor.in("mixer"));
  if (!channel_) return;
  channel_norm_.visit(visitor, "channel_norm");
  channel_->visit(visitor.in("channel"));
}

}  // namespace quipu::inline QUIPU_REAL_NS
