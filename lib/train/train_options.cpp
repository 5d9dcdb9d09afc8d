#include "train/train_options.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {

void complete(TrainOptions& o) {
  const Index steps = o.schedule.steps;
  if (steps < 1) throw UsageError("--steps: {} is below 1; give 1 or more", steps);
  if (o.eval_every == 0) o.eval_every = std::max<Index>(1, steps / 10);
  if (o.log_every == 0) o.log_every = std::max<Index>(1, steps / 100);
  if (o.length == 0) o.length = kUsualLength;
  o.model.length = o.length;
  if (!o.curriculum.empty()) {
    o.segments = o.curriculum.back();
    if (o.carry_state)
      throw UsageError(
          "--curriculum: windows of other lengths cut a carried stream elsewhere; leave out --carry-state");
    if (std::ssize(o.curriculum) > steps)
      throw UsageError("--curriculum: {} stages for {} steps; give --steps {} or more", o.curriculum.size(), steps,
                       o.curriculum.size());
  }
  if (o.reach.detach_every > 0 && o.reach.depth != GradientReach::kAll)
    throw UsageError("--detach-every {} and --bptt-depth {}: both say how far gradients reach; give one of them",
                     o.reach.detach_every, o.reach.depth);
  check_schedule(o.schedule);
}

Index TrainOptions::segments_at(Index step) const {
  if (curriculum.empty()) return segments;
  const auto stages = static_cast<Index>(curriculum.size());
  const Index stage = std::min(stages - 1, step * stages / std::max<Index>(schedule.steps, 1));
  return curriculum[static_cast<std::size_t>(stage)];
}

std::map<std::string, std::string> settings_of(const TrainOptions& o, const std::string& data_digest) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  std::map<std::string, std::string> settings{
      {"data", data_digest},
      {"--batch", text(o.batch)},
      {"--seq-len", text(o.length)},
      {"--segments", text(o.segments)},
      {"--curriculum", fmt::format("{}", fmt::join(o.curriculum, ","))},
      {"--bptt-depth", o.reach.depth == GradientReach::kAll ? "all" : text(o.reach.depth)},
      {"--detach-every", text(o.reach.detach_every)},
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
  if (o.precision == Precision::bf16) settings["--precision"] = "bf16";
  return settings;
}

}  // namespace quipu
