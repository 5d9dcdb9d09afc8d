#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/real.h"

namespace quipu {

/// How far a training run is: everything beside weights, optimiser and carried state that it needs to go on exactly.
/// Saved as the JSON text `progress` of a checkpoint. It holds no times, so that equal runs give equal files.
struct TrainProgress {
  Index step = 0;       ///< optimiser steps taken
  Index tokens = 0;     ///< read, padding and unscored ones included
  Index evaluated = 0;  ///< the last step after which the validation split was read
  Index logged = 0;     ///< the last step with a line in the log
  std::optional<double> last_valid_nats;
  std::optional<double> best_valid_nats;
  Index best_step = 0;

  /// Since the last line of the log: the sum of the losses, over how many tokens, and the last gradient norm.
  double loss_sum_nats = 0;
  Index loss_tokens = 0;
  double gradient_norm = 0;
  double last_loss_nats = 0;  ///< of the last line of the log

  /// What must agree for the run to go on, as it would stand on the command line ("--lr": "0.001").
  std::map<std::string, std::string> settings;
  int threads = 0;
  std::string products;
  /// Integer leaves of the carried state, by name, one number a lane.
  std::map<std::string, std::vector<std::int64_t>> carried_integers;

  bool operator==(const TrainProgress&) const = default;
};

std::string to_json(const TrainProgress& progress);
/// Throws InputError, opening with `where`, for a text that is no progress.
TrainProgress progress_from_json(const std::string& json, const std::string& where);

}  // namespace quipu
