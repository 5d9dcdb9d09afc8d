#include "train/memory_estimate.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/stop.h"
#include "tensor/arena.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Bytes that forward and backward over `lanes` lanes need beyond what is in use before them.
std::size_t measure(LanguageModel& model, Optimizer& optimizer, const Split& split, TrainOptions options, Index lanes) {
  options.batch = lanes;
  options.accumulate = 1;
  const Batcher batcher(split, {lanes, options.length, options.carry_state, options.seed}, split.name());
  TrainStep step(model, optimizer, batcher, options);
  Batch batch;
  batcher.fill(0, batch);
  const std::size_t before = arena::usage().in_use;
  arena::reset_high_water();
  ModelState state = model.initial_state(lanes);
  step.accumulate_gradients(batch, 0, static_cast<double>(std::max<Index>(batch.scored, 1)), state);
  return arena::usage().high_water - before;
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

  if (stop_requested()) return std::nullopt;
  const std::size_t one = measure(model, optimizer, split, options, 1);
  estimate.activations = one;
  if (options.batch > 1) {
    if (stop_requested()) return std::nullopt;
    const std::size_t two = std::max(one, measure(model, optimizer, split, options, 2));
    estimate.activations = one + (two - one) * static_cast<std::size_t>(options.batch - 1);
  }
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
