#include "models/block.h"

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

Block::Block(std::unique_ptr<Mixer> mixer, std::unique_ptr<Mixer> channel, const std::string& norm, Index dim,
             double eps, Index layer)
    : mixer_(std::move(mixer)), channel_(std::move(channel)), mixer_norm_(norm, dim, eps), layer_(layer) {
  if (channel_) channel_norm_ = Norm(norm, dim, eps);
}

Var Block::forward(Tape& tape, const Var& x, const Context& context, State& mixer_state, State& channel_state) const {
  const Var mixed = mixer_->forward(tape, mixer_norm_(tape, x), context, mixer_state);
  const Var y = add(tape, x, dropped(tape, mixed, context, 2 * layer_));
  if (!channel_) return y;
  const Var channel = channel_->forward(tape, channel_norm_(tape, y), context, channel_state);
  return add(tape, y, dropped(tape, channel, context, 2 * layer_ + 1));
}

void Block::step(Matrix x, const Context& context, State& mixer_state, State& channel_state) const {
  const Matrix normed = context.scratch->take(x.rows, x.cols), out = context.scratch->take(x.rows, x.cols);
  mixer_norm_.step(normed, x);
  mixer_->step(normed, out, context, mixer_state);
  kernels::add_into(x.data, out.data, x.rows * x.cols);
  if (!channel_) return;
  channel_norm_.step(normed, x);
  channel_->step(normed, out, context, channel_state);
  kernels::add_into(x.data, out.data, x.rows * x.cols);
}

void Block::visit(const ParameterVisitor& visitor) {
  mixer_norm_.visit(visitor, "mixer_norm");
  mixer_->visit(visitor.in("mixer"));
  if (!channel_) return;
  channel_norm_.visit(visitor, "channel_norm");
  channel_->visit(visitor.in("channel"));
}

}  // namespace quipu::inline QUIPU_REAL_NS
