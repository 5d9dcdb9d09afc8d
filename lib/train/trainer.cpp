#include "train/trainer.h"

#include <cmath>
#include <numbers>

#include "base/log.h"
#include "base/stop.h"
#include "tensor/arena.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr double kSaveEvery_s = 600;

}  // namespace

TrainSummary Trainer::run(const TrainObserver& observer) {
  since_start_ = since_save_ = {};
  training_s_ = 0;
  training_tokens_ = 0;
  TrainingLog log(options_.log, progress_.logged);
  if (resumed_from_.empty() && files_.is_file()) save();  // an output that cannot be written shows now, not in an hour
  if (resumed_from_ == options_.output) saved_step_ = progress_.step;
  TrainStep train_step(*model_, *optimizer_, options_);

  bool stopped = false;
  while (true) {
    if (!finish_step(log, observer)) stopped = true;
    if (stopped || is_finished()) break;
    const Stopwatch step;
    const std::optional<StepResult> result =
        must_stop() ? std::nullopt : train_step.run(progress_.step, batcher_at(progress_.step), carried_);
    if (!result) {
      stopped = true;
      break;
    }
    recent_step_s_ = step.seconds();
    training_s_ += recent_step_s_;
    training_tokens_ += result->tokens;
    account(*result);
    if (observer.on_step)
      observer.on_step(progress_.step, result->nll_sum_nats / static_cast<double>(std::max<Index>(result->scored, 1)));
  }
  if (saved_step_ != progress_.step) save();
  return summary(stopped);
}

void Trainer::account(const StepResult& result) {
  ++progress_.step;
  progress_.tokens += result.tokens;
  progress_.loss_sum_nats += result.nll_sum_nats;
  progress_.loss_tokens += result.scored;
  progress_.gradient_norm = result.gradient_norm;
}

bool Trainer::is_due(Index every) const {
  const Index step = progress_.step;
  return step > 0 && (step % every == 0 || step >= options_.schedule.steps);
}

bool Trainer::must_stop() const { return stop_requested() || time_left_s() < 2 * save_took_s_ + recent_step_s_; }

bool Trainer::is_solved() const {
  return options_.stop_below_nats && progress_.last_valid_nats &&
         *progress_.last_valid_nats < *options_.stop_below_nats;
}

bool Trainer::finish_step(TrainingLog& log, const TrainObserver& observer) {
  const Index step = progress_.step;
  const bool evaluates = valid_ != nullptr && is_due(options_.eval_every);
  if (evaluates && progress_.evaluated != step && !evaluate()) return false;
  if ((evaluates || is_due(options_.log_every)) && progress_.logged != step) write_line(log, observer);
  const bool by_step = is_due(options_.save_every > 0 ? options_.save_every : options_.eval_every);
  const bool by_time = options_.save_every == 0 && since_save_.seconds() > kSaveEvery_s;
  if ((by_step || by_time) && saved_step_ != step && files_.is_file()) {
    save();
    if (by_step) files_.keep_step(step);
  }
  return true;
}

bool Trainer::evaluate() {
  const auto result =
      validate(*model_, *valid_,
               {options_.batch, options_.length, options_.segments, options_.carry_state, options_.eval_tokens});
  if (!result) return false;
  const double nats = result->nats_per_token();
  if (!std::isfinite(nats)) {
    const std::string weight = first_bad_parameter(*model_);
    throw NumericError("step {}: the validation loss is {}, first in {}; lower --lr or lengthen --warmup",
                       progress_.step, nats, weight.empty() ? "the loss itself" : "the weight " + weight);
  }
  progress_.evaluated = progress_.step;
  progress_.last_valid_nats = nats;
  if (progress_.best_valid_nats && nats >= *progress_.best_valid_nats) return true;
  progress_.best_valid_nats = nats;
  progress_.best_step = progress_.step;
  if (files_.is_file()) {
    CheckpointFacts facts_now = facts();
    save_model(files_.best(), std::move(facts_now), model_->parameters(), nullptr, nullptr);
  }
  return true;
}

void Trainer::write_line(TrainingLog& log, const TrainObserver& observer) {
  LogLine line;
  line.step = progress_.step;
  line.steps = options_.schedule.steps;
  line.tokens = progress_.tokens;
  line.epoch = batcher_at(progress_.step).epochs_before(progress_.step * options_.accumulate);
  line.loss_nats = progress_.loss_sum_nats / static_cast<double>(std::max<Index>(progress_.loss_tokens, 1));
  if (progress_.evaluated == progress_.step) line.valid_loss_nats = progress_.last_valid_nats;
  line.learning_rate = learning_rate(options_.schedule, progress_.step - 1);
  line.gradient_norm = progress_.gradient_norm;
  line.tokens_per_s = training_s_ > 0 ? static_cast<double>(training_tokens_) / training_s_ : 0;
  const Index per_step = options_.batch * batcher_at(progress_.step).length() * options_.accumulate;
  const auto left = static_cast<double>((line.steps - line.step) * per_step);
  line.time_left_s = line.tokens_per_s > 0 ? left / line.tokens_per_s : 0;
  line.memory_bytes = arena::usage().high_water;
  log.write(line);

  progress_.logged = progress_.step;
  progress_.last_loss_nats = line.loss_nats;
  progress_.loss_sum_nats = 0;
  progress_.loss_tokens = 0;
  training_s_ = 0;
  training_tokens_ = 0;
  if (observer.on_line) observer.on_line(line);
}

void Trainer::save() {
  const Stopwatch saving;
  if (const std::string weight = first_bad_parameter(*model_); !weight.empty())
    throw NumericError("step {}: the weight {} is not finite, so {} stays as it was; lower --lr or lengthen --warmup",
                       progress_.step, weight, options_.output);
  save_model(options_.output, facts(), model_->parameters(), optimizer_.get(),
             options_.carry_state ? &carried_ : nullptr);
  saved_step_ = progress_.step;
  save_took_s_ = saving.seconds();
  since_save_ = {};
}

TrainSummary Trainer::summary(bool stopped) const {
  TrainSummary s;
  s.stopped = stopped;
  s.solved = !stopped && progress_.step < options_.schedule.steps;
  s.step = progress_.step;
  s.steps = options_.schedule.steps;
  s.tokens = progress_.tokens;
  s.loss_nats = progress_.last_loss_nats;
  if (progress_.logged == 0 && progress_.loss_tokens > 0)
    s.loss_nats = progress_.loss_sum_nats / static_cast<double>(progress_.loss_tokens);
  s.valid_nats = progress_.last_valid_nats;
  s.best_valid_nats = progress_.best_valid_nats;
  s.best_step = progress_.best_step;
  if (s.best_valid_nats && valid_ != nullptr && valid_->bytes() > 0)
    s.best_bits_per_byte = *s.best_valid_nats / std::numbers::ln2 * static_cast<double>(valid_->tokens()) /
                           static_cast<double>(valid_->bytes());
  s.wall_s = since_start_.seconds();
  s.last = options_.output;
  if (s.best_valid_nats && files_.is_file()) s.best = files_.best();
  return s;
}

}  // namespace quipu::inline QUIPU_REAL_NS
