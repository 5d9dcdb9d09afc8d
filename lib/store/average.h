#pragma once
#include <string>
#include <vector>

namespace quipu {

/// Saves the mean of the parameters of checkpoints (at least one; a checkpoint may come several times) under `output`.
/// The numbers are summed in double. What an optimiser remembers and the progress are left out: the result can be
/// evaluated, generate, and start a new training, not continue an old one. `commands`: for the provenance.
/// Throws InputError where configurations, tokenizers or shapes disagree.
void average_checkpoints(const std::vector<std::string>& inputs, const std::string& output,
                         const std::vector<std::string>& commands);

}  // namespace quipu
