#pragma once
#include <span>
#include <string_view>

#include "base/real.h"

namespace quipu {

/// How the learning rate falls after the warm-up.
enum class Schedule { kConstant, kLinear, kCosine, kCosineRestarts, kInverseSqrt, kWsd };

/// A schedule, its name on the command line and in files, and what it does in one line.
struct ScheduleEntry {
  Schedule schedule;
  std::string_view name;
  std::string_view summary;
};

/// All schedules: the only list of their names.
std::span<const ScheduleEntry> schedule_table();

/// Throws UsageError with the names that exist.
Schedule schedule_from_name(std::string_view name);
std::string_view schedule_name(Schedule schedule);

/// Rates are per step; `warmup`, `steps` and `restart_period` count optimiser steps.
struct ScheduleOptions {
  Schedule schedule = Schedule::kCosine;
  double peak = 1e-3;
  double min = 0;    // linear, cosine, cosine-restarts and wsd end here; inverse-sqrt never falls below
  Index warmup = 0;  // steps of linear rise
  Index steps = 0;   // in all, the warm-up included; constant and inverse-sqrt do not need it

  double warmup_start = 0;        // the rate from which the warm-up rises
  bool warmup_from_zero = false;  // rate of step s < warmup: share s/warmup of the way; otherwise (s+1)/warmup

  double restart_period = 0;      // cosine-restarts: length of the first cycle; 0: three cycles fill `steps`
  double restart_multiplier = 2;  // each cycle is so many times as long as the one before
  double decay_share = 0.1;       // wsd: share of `steps`, at the end, in which the rate falls linearly
};

/// Throws UsageError where the options make no schedule, naming both numbers.
void check_schedule(const ScheduleOptions& options);

/// The learning rate of optimiser step 0, 1, ...: a pure function, so that a resumed run needs no stored state.
/// With u = (step - warmup) / (steps - warmup), clipped to [0, 1]:
///   linear  min + (peak-min)(1-u);   cosine  min + (peak-min)(1+cos(pi u))/2;   inverse-sqrt  peak sqrt(warmup/step);
///   cosine-restarts  the cosine of the place in the current cycle (arXiv:1608.03983);
///   wsd  peak, then linearly to min (arXiv:2404.06395).
/// The options must have passed `check_schedule`.
double learning_rate(const ScheduleOptions& options, Index step);

}  // namespace quipu
