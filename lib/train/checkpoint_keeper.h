#pragma once
#include <string>
#include <vector>

#include "base/real.h"

namespace quipu {

/// The files around MODEL.h5. All names are `MODEL` + something + `.h5`, or the output with something put behind where
/// it does not end in `.h5`.
class CheckpointKeeper {
 public:
  /// `keep`: how many periodic checkpoints stay beside the last one.
  CheckpointKeeper(const std::string& output, Index keep);

  const std::string& last() const { return output_; }
  /// MODEL.best.h5.
  const std::string& best() const { return best_; }
  /// Whether the output is a regular file or none yet: only such a one can be resumed, and has files beside it.
  bool is_file() const { return is_file_; }

  /// Gives the checkpoint that was just saved a second name, MODEL.step-000500.h5, without copying it where the file
  /// system can, and removes the oldest of these beyond `keep`. Throws InputError where the system refuses.
  void keep_step(Index step) const;
  /// The names of kept checkpoints, newest first.
  std::vector<std::string> kept() const;

 private:
  std::string output_, stem_, suffix_, best_;
  Index keep_;
  bool is_file_;
};

}  // namespace quipu
