#pragma once
#include <cstddef>
#include <optional>

#include "train/train_step.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a training run needs, in bytes.
struct MemoryEstimate {
  std::size_t parameters = 0;
  std::size_t gradients = 0;
  std::size_t optimizer = 0;
  std::size_t activations = 0;  ///< of the largest moment of a step
  std::size_t process = 0;      ///< program, libraries, the data held in memory
  std::size_t total() const { return parameters + gradients + optimizer + activations + process; }
};

/// Measures: runs forward and backward over one and over two lanes of a few segments of training data, reads the
/// arena's high water, and extrapolates to all lanes and segments. Weights and optimiser stay as they are; the
/// gradients are left zero. Returns nothing where a stop was asked for in between.
std::optional<MemoryEstimate> estimate_memory(LanguageModel& model, Optimizer& optimizer, const Split& split,
                                              const TrainOptions& options);

/// Bytes of this process that are in memory now, 0 where the system does not say.
std::size_t resident_bytes();

}  // namespace quipu::inline QUIPU_REAL_NS
