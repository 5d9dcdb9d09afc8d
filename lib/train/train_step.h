#pragma once
#include <optional>
#include <vector>

#include "models/language_model.h"
#include "train/batcher.h"
#include "train/optimizer.h"
#include "train/train_options.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What one optimiser step saw.
struct StepResult {
  double nll_sum_nats = 0;  ///< over the scored tokens of all its batches
  Index scored = 0;
  Index tokens = 0;  ///< read
  double gradient_norm = 0;
  double learning_rate = 0;
};

/// Takes optimiser steps: the gradients of `accumulate` batches, averaged over all their scored tokens, clipped,
/// applied. Step s reads the batches s * accumulate, ... and draws its random numbers by their numbers.
class TrainStep {
 public:
  TrainStep(LanguageModel& model, Optimizer& optimizer, const TrainOptions& options);

  /// Takes step `step`, from what `batcher` gives. `carried` goes on from batch to batch where the batcher carries, and
  /// is else left alone. Returns nothing, and leaves weights, optimiser and `carried` as they were, where a stop was
  /// asked for before the gradients were complete. Throws NumericError, likewise with nothing changed, where the loss
  /// or a gradient is not finite; it names the step and the first bad tensor.
  std::optional<StepResult> run(Index step, const Batcher& batcher, ModelState& carried);

  /// Forward and backward over one batch, segment by segment, as `run` does it, into the gradients. Returns its nll
  /// sum; `state` is what it is after the batch, where `keep_state`.
  double accumulate_gradients(const Batch& batch, Index number, double divisor, bool keep_state, ModelState& state);

 private:
  void require_finite(Index step, double loss, const GradientNorm& gradient) const;

  LanguageModel& model_;
  Optimizer& optimizer_;
  const TrainOptions& options_;
  std::vector<Batch> batches_;
};

/// The first parameter that holds a number that is not finite, or "" where there is none.
std::string first_bad_parameter(LanguageModel& model);

}  // namespace quipu::inline QUIPU_REAL_NS
