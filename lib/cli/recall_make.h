#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "store/recall_file.h"

namespace quipu {

/// What `recall-bench make` was asked for; lives as long as the tool.
struct RecallMakeOptions {
  RecallFileSpec spec;
  std::map<std::string, std::string> values;  ///< parameters of the task, as they were given
  std::optional<Index> train, valid, test;    ///< examples
  std::string tokenizer = "bytes";
  std::vector<std::string> texts, stories;
  std::optional<std::string> needle, question, answer;
};

/// Adds the command `make` to recall-bench.
void add_recall_make(Command& tool, RecallMakeOptions& options);
/// Adds the command `list`.
void add_recall_list(Command& tool);

}  // namespace quipu
