#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "text/recall_task.h"

namespace quipu {

/// The splits of a task, in this order.
inline const std::vector<std::string> kTaskSplits = {"train", "valid", "test"};

/// Which split an example belongs to, by what it asks alone: its fingerprint gives an eighth of all examples to test,
/// an eighth to valid, the rest to train. So no example can be in two splits, whatever the seeds and sizes.
const std::string& split_of(const Digest& identity);

/// Makes examples first, first + 1, ... of a split: `inputs` and `targets` [n, task.length()]. Each is a function of
/// the task, the seed, the split's name and its index alone: draws are taken until one belongs to the split.
/// Throws UsageError where none is found within a thousand draws, as there are too few different examples.
void draw_examples(const RecallTask& task, std::uint64_t seed, const std::string& split, Index first,
                   std::span<std::int32_t> inputs, std::span<std::int32_t> targets);

}  // namespace quipu
