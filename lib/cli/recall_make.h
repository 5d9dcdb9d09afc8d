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

/// Adds all options that say what a task is but its name: examples to `section`, the rest to sections of their own.
void add_task_options(const Command& command, const Section& section, RecallMakeOptions& options);

/// Everything that the command line leaves open. A task in a text is there to be measured on, unless it is said, and
/// its texts are read. Throws UsageError for what cannot be, InputError for texts that cannot be read.
void complete_task(RecallMakeOptions& options, std::uint64_t seed);

/// Adds the command `make` to recall-bench.
void add_recall_make(Command& tool, RecallMakeOptions& options);
/// Adds the command `list`.
void add_recall_list(Command& tool);

}  // namespace quipu
