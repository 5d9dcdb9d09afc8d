#pragma once
#include <optional>
#include <string>

#include "cli/app.h"

namespace quipu {

/// What `recall-bench run` was asked for; lives as long as the tool.
struct RecallRunOptions {
  std::string model, task, split = "test";
  Index batch = 0, batch_tokens = 8192, max_examples = 0;
  Index compare_examples = 16, compare_tokens = 16 << 10;
  Index max_tokens = 0, answer_tokens = 48;
  std::optional<std::string> prompt;
  std::string stop = "\\n";
  std::optional<double> min_accuracy;
};

/// Adds the command `run` to recall-bench.
void add_recall_run(Command& tool, RecallRunOptions& options);

}  // namespace quipu
