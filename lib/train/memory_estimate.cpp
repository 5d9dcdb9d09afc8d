#include "train/memory_estimate.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/stop.h"
#include "tensor/arena.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Bytes that forward and backward over `lanes` lanes of `segments` segments need beyond what is in use before them.
double measure(LanguageModel& model, Optimizer& optimizer, const Split& split, TrainOptions options, Index lanes,
               Index segments) {
  options.batch = lanes;
  options.accumulate = 1;
  const Batcher batcher(split, {lanes, segments * options.length, options.carry_state, options.seed}, split.name());
  TrainStep step(model, optimizer, options);
  Batch batch;
  batcher.fill(0, batch);
  const std::size_t before = arena::usage().in_use;
  arena::reset_high_water();
  ModelState state = model.initial_state(lanes);
  step.accumulate_gradients(batch, 0, static_cast<double>(std::max<Index>(batch.scored, 1)), options.carry_state,
                            state);
  return static_cast<double>(arena::usage().high_water - before);
}

/// f(n) of a function of a count that grows evenly from `from` on, without asking it for more than from + 1.
template <typename F>
std::optional<double> extrapolate(Index n, Index from, const F& f) {
  const std::optional<double> first = f(std::min(n, from));
  if (!first || n <= from) return first;
  const std::optional<double> second = f(from + 1);
  if (!second) return second;
  return *first + std::max(0.0, *second - *first) * static_cast<double>(n - from);
}

}  // namespace

std::optional<MemoryEstimate> estimate_memory(LanguageModel& model, Optimizer& optimizer, const Split& split,
                                              const TrainOptions& options) {
  MemoryEstimate estimate;
  const std::size_t resident = resident_bytes();
  estimate.parameters = model.parameters().values().size_bytes();
  estimate.gradients = model.parameters().gradients().size_bytes();
  for (const auto& array : optimizer.state()) estimate.optimizer += array.values.size_bytes();
  const std::size_t own = estimate.parameters + estimate.gradients + estimate.optimizer;
  estimate.process = resident > own ? resident - own : 0;

  const auto of_lanes = [&](Index lanes) {
    const auto of_segments = [&](Index segments) -> std::optional<double> {
      if (stop_requested()) return std::nullopt;
      return measure(model, optimizer, split, options, lanes, segments);
    };
    return split.is_scored() ? of_segments(options.segments) : extrapolate(options.segments, 2, of_segments);
  };
  const std::optional<double> activations = extrapolate(options.batch, 1, of_lanes);
  if (!activations) return std::nullopt;
  estimate.activations = static_cast<std::size_t>(*activations);
  model.parameters().zero_gradients();
  arena::reset_high_water();
  return estimate;
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace quipu::inline QUIPU_REAL_NS
