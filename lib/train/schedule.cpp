#include "train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"

namespace quipu {
namespace {

constexpr std::array kTable = {
    ScheduleEntry{Schedule::kConstant, "constant", "stays at the peak"},
    ScheduleEntry{Schedule::kLinear, "linear", "falls in a straight line to the minimum"},
    ScheduleEntry{Schedule::kCosine, "cosine", "falls along half a cosine to the minimum"},
    ScheduleEntry{Schedule::kCosineRestarts, "cosine-restarts", "cosine cycles, each longer than the one before"},
    ScheduleEntry{Schedule::kInverseSqrt, "inverse-sqrt", "falls with one over the root of the step"},
    ScheduleEntry{Schedule::kWsd, "wsd", "stays at the peak, then falls to the minimum at the end"},
};

constexpr double kAutomaticCycles = 3;

bool needs_steps(Schedule schedule) { return schedule != Schedule::kConstant && schedule != Schedule::kInverseSqrt; }

double cosine(const ScheduleOptions& o, double u) {
  return o.min + 0.5 * (o.peak - o.min) * (1 + std::cos(std::numbers::pi * u));
}

double linear(const ScheduleOptions& o, double u) { return o.min + (o.peak - o.min) * (1 - u); }

/// The place in [0, 1) within the cycle in which the `elapsed`-th step after the warm-up falls.
double place_in_cycle(const ScheduleOptions& o, double elapsed) {
  double period = o.restart_period;
  if (period == 0) {
    double cycles = 0;
    for (double i = 0; i < kAutomaticCycles; ++i) cycles += std::pow(o.restart_multiplier, i);
    period = static_cast<double>(o.steps - o.warmup) / cycles;
  }
  if (o.restart_multiplier == 1) return std::fmod(elapsed, period) / period;
  while (elapsed >= period) {
    elapsed -= period;
    period *= o.restart_multiplier;
  }
  return elapsed / period;
}

double wsd(const ScheduleOptions& o, double step) {
  const double total = static_cast<double>(o.steps);
  const double fall = std::min(o.decay_share * total, total - static_cast<double>(o.warmup));
  const double left = total - step;
  return left >= fall ? o.peak : linear(o, 1 - left / fall);
}

}  // namespace

std::span<const ScheduleEntry> schedule_table() { return kTable; }

Schedule schedule_from_name(std::string_view name) {
  std::string names;
  for (const ScheduleEntry& entry : kTable) {
    if (entry.name == name) return entry.schedule;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw UsageError("schedule: no schedule is called '{}'; choose one of {}", name, names);
}

std::string_view schedule_name(Schedule schedule) {
  for (const ScheduleEntry& entry : kTable) {
    if (entry.schedule == schedule) return entry.name;
  }
  throw InternalError("schedule {} is not in the table", static_cast<int>(schedule));
}

void check_schedule(const ScheduleOptions& o) {
  if (!(o.peak >= 0) || !std::isfinite(o.peak)) {
    throw UsageError("learning rate: {} is not a rate; give a finite number of at least 0", o.peak);
  }
  if (!(o.min >= 0 && o.min <= o.peak)) {
    throw UsageError("learning rate: the minimum {} is outside 0 to the peak {}; lower the minimum", o.min, o.peak);
  }
  if (!(o.warmup_start >= 0 && o.warmup_start <= o.peak)) {
    throw UsageError("learning rate: the warm-up starts at {}, outside 0 to the peak {}; lower its start",
                     o.warmup_start, o.peak);
  }
  if (o.warmup < 0) throw UsageError("schedule: a warm-up of {} steps; give 0 or more", o.warmup);
  if (needs_steps(o.schedule) && o.steps <= o.warmup) {
    throw UsageError("schedule: {} steps in all with a warm-up of {}; shorten the warm-up or train longer", o.steps,
                     o.warmup);
  }
  if (!(o.restart_period >= 0) || (o.restart_period > 0 && o.restart_period < 1)) {
    throw UsageError("schedule: a restart period of {} steps; give 1 or more, or 0 to fill the run", o.restart_period);
  }
  if (!(o.restart_multiplier >= 1) || !std::isfinite(o.restart_multiplier)) {
    throw UsageError("schedule: a restart multiplier of {}; give 1 or more", o.restart_multiplier);
  }
  if (!(o.decay_share >= 0 && o.decay_share <= 1)) {
    throw UsageError("schedule: a decay share of {}; give 0 to 1", o.decay_share);
  }
}

double learning_rate(const ScheduleOptions& o, Index step) {
  if (step < o.warmup) {
    const double risen = static_cast<double>(step + (o.warmup_from_zero ? 0 : 1)) / static_cast<double>(o.warmup);
    return o.warmup_start + (o.peak - o.warmup_start) * risen;
  }
  if (o.schedule == Schedule::kConstant) return o.peak;
  if (o.schedule == Schedule::kInverseSqrt) {
    const double start = static_cast<double>(std::max<Index>(o.warmup, 1));
    return std::max(o.min, o.peak * std::sqrt(start / static_cast<double>(std::max<Index>(step, 1))));
  }
  if (step >= o.steps) return o.min;
  const double elapsed = static_cast<double>(step - o.warmup);
  const double u = elapsed / static_cast<double>(o.steps - o.warmup);
  switch (o.schedule) {
    case Schedule::kLinear:
      return linear(o, u);
    case Schedule::kCosineRestarts:
      return cosine(o, place_in_cycle(o, elapsed));
    case Schedule::kWsd:
      return wsd(o, static_cast<double>(step));
    default:
      return cosine(o, u);
  }
}

}  // namespace quipu
