#pragma once
#include "cli/app.h"
#include "cli/sweep_plan.h"

namespace quipu {

/// Adds the command `sweep` to recall-bench.
void add_recall_sweep(Command& tool, RecallSweepOptions& options);

}  // namespace quipu
