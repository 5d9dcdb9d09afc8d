#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/dataset_file.h"
#include "text/haystack_task.h"
#include "text/recall_audit.h"

namespace quipu {

/// What a file of a task is made of.
struct RecallFileSpec {
  std::string output;  ///< `-`: stdout
  std::string task;
  TaskValues values;
  std::optional<HaystackInputs> inputs;                      ///< of a task in a text
  std::vector<std::pair<std::string, std::string>> options;  ///< of the command that the inputs came from, for the
                                                             ///< provenance: {"text", "kjv.txt"}
  std::vector<std::string> data;                             ///< lines `DIGEST PATH` of files
  std::uint64_t seed = 1;
  Index train = 100000, valid = 1000, test = 3000;  ///< examples; 0: no such split
  std::function<void(Index)> on_progress;           ///< examples made so far
};

struct RecallFileSummary {
  Index vocab = 0, length = 0;
  double chance = 0;
  Index left_out = 0;                                 ///< RecallTask::left_out
  std::vector<std::pair<std::string, Index>> splits;  ///< examples
  RecallFindings findings;
};

/// What the file of a task says of its origin: the command with all parameters, and the texts. Files of the same
/// origin are the same.
Provenance recall_provenance(const RecallFileSpec& spec);

/// Makes a dataset of scored examples. The file is the same to the last byte whenever and wherever it is made: its
/// provenance is the command with all parameters, and it has no date unless SOURCE_DATE_EPOCH gives one.
/// Audits all it wrote, and throws InternalError (leaving no file) where the audit finds something.
RecallFileSummary make_recall_file(const RecallFileSpec& spec);

/// What a file says of its task.
struct TaskFacts {
  std::string name, parameters;
  std::uint64_t seed = 0;
  double chance = 0, ceiling = 1;
  std::optional<double> chance_among_seen;
  /// Whether its accuracy is that of whole examples (an answer of several tokens), or that of scored tokens.
  bool whole_examples = false;
};

/// Nothing where the dataset holds no task.
std::optional<TaskFacts> read_task_facts(const Dataset& dataset);
void write_task_facts(DatasetWriter& writer, const TaskFacts& facts);

}  // namespace quipu
