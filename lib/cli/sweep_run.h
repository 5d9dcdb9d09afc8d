#pragma once
#include "cli/sweep_folder.h"
#include "cli/tool_info.h"

namespace quipu {

/// What a call of a sweep came to. A cell of the call is in one of these, unless a stop came before it.
struct SweepSummary {
  Index done = 0;      ///< this call or earlier
  Index failed = 0;    ///< this call: its next one tries them again
  Index diverged = 0;  ///< came to numbers that are not finite where that leaves something unmeasured
  Index waiting = 0;   ///< further seeds whose rate is not decided, or cells that another process is at
  bool stopped = false;

  /// kStopped where another call goes on from here, kFailed where something failed.
  Status status() const;
};

/// Runs the cells of this call that are not done, `jobs` at a time: for each, one process after another trains, scores
/// on the validation split and on the test split. What fails is a warning, and the others go on. A stop (base/stop.h)
/// is handed to the running processes, which save. `on_result` is called when another cell is done. Throws UsageError
/// where a cell is in the folder with other options, InputError where the system refuses.
SweepSummary run_sweep(const SweepPlan& plan, const SweepFolder& folder, Index jobs,
                       const std::function<void()>& on_result);

}  // namespace quipu
