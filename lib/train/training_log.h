#pragma once
#include <optional>
#include <string>

#include "base/file.h"
#include "base/real.h"

namespace quipu {

/// One line of the log: what happened up to a step.
struct LogLine {
  Index step = 0;
  Index steps = 0;  ///< of the whole run
  Index tokens = 0;
  double epoch = 0;
  double loss_nats = 0;  ///< per scored token, over the steps since the line before
  std::optional<double> valid_loss_nats;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  double tokens_per_s = 0;   ///< of training alone, since the line before
  double time_left_s = 0;
  std::size_t memory_bytes = 0;  ///< the arena's high water
};

/// As one line of JSON, without its end: step, tokens, epoch, loss_nats, valid_loss_nats, lr, gradient_norm,
/// tokens_per_s, memory_bytes.
std::string to_json(const LogLine& line);

/// The file of --log: a JSON object a line. Each line is written at once.
class TrainingLog {
 public:
  /// Keeps the lines of an earlier run up to step `keep_through`, and drops what comes after them (also half a line),
  /// so that a resumed run's log is that of one run. 0 begins a new file. A path that is no regular file is written
  /// to as it is; an empty path: nothing is written. Throws InputError where the system refuses.
  TrainingLog(const std::string& path, Index keep_through);

  void write(const LogLine& line);

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace quipu
