#include "train/train_step.h"

#include <algorithm>
#include <cmath>

#include "base/stop.h"

namespace quipu::inline QUIPU_REAL_NS {

TrainStep::TrainStep(LanguageModel& model, Optimizer& optimizer, const Batcher& batcher, const TrainOptions& options)
    : model_(model),
      optimizer_(optimizer),
      batcher_(batcher),
      options_(options),
      batches_(static_cast<std::size_t>(options.accumulate)) {
  model_.set_checkpoint_activations(options.checkpoint_activations);
  model_.set_layer_dropout(options.layer_dropout);
}

double TrainStep::accumulate_gradients(const Batch& batch, Index number, double divisor, ModelState& state) {
  const Context context{.layout = batch.layout,
                        .training = true,
                        .keep_state = batcher_.carries(),
                        .seed = options_.seed,
                        .step = static_cast<std::uint64_t>(number),
                        .dropout = options_.dropout};
  Tape tape(true);
  const Var hidden = model_.forward(tape, batch.tokens, context, state);
  const LossOutput out =
      model_.loss(tape, hidden, batch.targets, {.smoothing = options_.label_smoothing, .divisor = divisor});
  tape.backward(out.loss);
  return out.nll_sum_nats;
}

std::optional<StepResult> TrainStep::run(Index step, ModelState& carried) {
  StepResult result;
  const Index first = step * options_.accumulate;
  for (Index i = 0; i < options_.accumulate; ++i) {
    Batch& batch = batches_[static_cast<std::size_t>(i)];
    batcher_.fill(first + i, batch);
    result.scored += batch.scored;
    result.tokens += batch.layout.batch * batch.layout.length;
  }
  const auto divisor = static_cast<double>(std::max<Index>(result.scored, 1));

  Parameters& parameters = model_.parameters();
  parameters.zero_gradients();
  ModelState state = batcher_.carries() ? carried : ModelState{};
  for (Index i = 0; i < options_.accumulate; ++i) {
    if (stop_requested()) return std::nullopt;
    if (!batcher_.carries()) state = model_.initial_state(batcher_.batch());
    result.nll_sum_nats += accumulate_gradients(batches_[static_cast<std::size_t>(i)], first + i, divisor, state);
    state = state.detached();
  }
  const GradientNorm gradient = grad_norm(parameters.gradients());
  require_finite(step, result.nll_sum_nats / divisor, gradient);

  result.gradient_norm = gradient.norm;
  result.learning_rate = learning_rate(options_.schedule, step);
  optimizer_.step(parameters.values(), parameters.gradients(), result.learning_rate,
                  clip_coefficient(gradient.norm, options_.clip));
  if (batcher_.carries()) carried = std::move(state);
  return result;
}

void TrainStep::require_finite(Index step, double loss, const GradientNorm& gradient) const {
  if (std::isfinite(loss) && std::isfinite(gradient.norm)) return;
  std::string where = "the loss itself";
  if (const std::string weight = first_bad_parameter(model_); !weight.empty())
    where = "the weight " + weight;
  else if (gradient.first_bad >= 0)
    where = "the gradient of " + model_.parameters().name_at(gradient.first_bad);
  throw NumericError(
      "step {}: loss {} and gradient norm {} are not both finite, first in {}; lower --lr (it is {:.3g}), lower --clip "
      "or lengthen --warmup",
      step + 1, loss, gradient.norm, where, learning_rate(options_.schedule, step));
}

std::string first_bad_parameter(LanguageModel& model) {
  Parameters& parameters = model.parameters();
  const Index bad = grad_norm(parameters.values()).first_bad;
  return bad < 0 ? "" : parameters.name_at(bad);
}

}  // namespace quipu::inline QUIPU_REAL_NS
