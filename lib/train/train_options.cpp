#include "train/train_options.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {

void complete(TrainOptions& o) {
  const Index steps = o.schedule.steps;
  if (steps < 1) throw UsageError("--steps: {} is below 1; give 1 or more", steps);
  if (o.eval_every == 0) o.eval_every = std::max<Index>(1, steps / 10);
  if (o.log_every == 0) o.log_every = std::max<Index>(1, steps / 100);
  o.model.length = o.length;
  check_schedule(o.schedule);
}

std::map<std::string, std::string> settings_of(const TrainOptions& o, const std::string& data_digest) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"data", data_digest},
          {"--batch", text(o.batch)},
          {"--seq-len", text(o.length)},
          {"--accumulate", text(o.accumulate)},
          {"--carry-state", text(o.carry_state)},
          {"--seed", text(o.seed)},
          {"--optimizer", std::string(optimizer_name(o.optimizer.kind))},
          {"--lr", text(o.schedule.peak)},
          {"--min-lr", text(o.schedule.min)},
          {"--warmup", text(o.schedule.warmup)},
          {"--schedule", std::string(schedule_name(o.schedule.schedule))},
          {"--weight-decay", text(o.optimizer.weight_decay)},
          {"--beta1", text(o.optimizer.beta1)},
          {"--beta2", text(o.optimizer.beta2)},
          {"--clip", text(o.clip)},
          {"--dropout", text(o.dropout)},
          {"--layer-dropout", text(o.layer_dropout)},
          {"--label-smoothing", text(o.label_smoothing)},
          {"--steps", text(o.schedule.steps)}};
}

}  // namespace quipu
