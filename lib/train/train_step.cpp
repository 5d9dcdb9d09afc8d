#include "train/train_step.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "base/stop.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr std::uint64_t kSegmentSite = rng_site("training segment");

}  // namespace

TrainStep::TrainStep(LanguageModel& model, Optimizer& optimizer, const TrainOptions& options)
    : model_(model), optimizer_(optimizer), options_(options), batches_(static_cast<std::size_t>(options.accumulate)) {
  model_.set_layer_dropout(options.layer_dropout);
}

double TrainStep::accumulate_gradients(const Batch& batch, Index number, double divisor, bool keep_state,
                                       ModelState& state) {
  std::vector<Batch> parts;
  for (Index begin = 0; begin < batch.layout.length; begin += options_.length)
    parts.push_back(columns_of(batch, begin, std::min(batch.layout.length, begin + options_.length)));
  std::vector<TrainingSegment> segments;
  const auto step = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < parts.size(); ++i)
    segments.push_back({parts[i].tokens,
                        {.layout = parts[i].layout,
                         .training = true,
                         .keep_state = keep_state || i + 1 < parts.size(),
                         .seed = i == 0 ? options_.seed : Rng(options_.seed, step, kSegmentSite).bits(i),
                         .step = step,
                         .dropout = options_.dropout}});

  // One segment is recomputed layer by layer, several one by one.
  GradientReach reach = options_.reach;
  reach.recompute = options_.checkpoint_activations && parts.size() > 1;
  model_.set_checkpoint_activations(options_.checkpoint_activations && parts.size() == 1);
  double nll_sum_nats = 0;
  const auto loss = [&](Tape& tape, std::size_t i, const Var& hidden) {
    const LossOutput out =
        model_.loss(tape, hidden, parts[i].targets, {.smoothing = options_.label_smoothing, .divisor = divisor});
    nll_sum_nats += out.nll_sum_nats;
    return out.loss;
  };
  backward_through_segments(model_, segments, loss, reach, state);
  return nll_sum_nats;
}

std::optional<StepResult> TrainStep::run(Index step, const Batcher& batcher, ModelState& carried) {
  StepResult result;
  const Index first = step * options_.accumulate;
  for (Index i = 0; i < options_.accumulate; ++i) {
    Batch& batch = batches_[static_cast<std::size_t>(i)];
    batcher.fill(first + i, batch);
    result.scored += batch.scored;
    result.tokens += batch.layout.batch * batch.layout.length;
  }
  const auto divisor = static_cast<double>(std::max<Index>(result.scored, 1));

  Parameters& parameters = model_.parameters();
  parameters.zero_gradients();
  ModelState state = batcher.carries() ? carried : ModelState{};
  for (Index i = 0; i < options_.accumulate; ++i) {
    if (stop_requested()) return std::nullopt;
    if (!batcher.carries()) state = model_.initial_state(batcher.batch());
    result.nll_sum_nats +=
        accumulate_gradients(batches_[static_cast<std::size_t>(i)], first + i, divisor, batcher.carries(), state);
  }
  const GradientNorm gradient = grad_norm(parameters.gradients());
  require_finite(step, result.nll_sum_nats / divisor, gradient);

  result.gradient_norm = gradient.norm;
  result.learning_rate = learning_rate(options_.schedule, step);
  optimizer_.step(parameters.values(), parameters.gradients(), result.learning_rate,
                  clip_coefficient(gradient.norm, options_.clip));
  if (batcher.carries()) carried = std::move(state);
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
