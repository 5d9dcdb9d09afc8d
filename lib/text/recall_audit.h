#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "text/recall_task.h"

namespace quipu {

/// What an audit found.
struct RecallFindings {
  Index examples = 0;
  std::vector<std::pair<std::string, Index>> distinct;  ///< of each split, examples that differ in their inputs
  Index overlap = 0;                                    ///< examples whose inputs stand in an earlier split, too
  TaskFaults faults;
  Index bad_examples = 0;  ///< with a fault

  bool clean() const { return overlap == 0 && bad_examples == 0; }
  /// "overlap 0, re-binding 0, wrong answers 0"
  std::string text() const;
};

/// Reads the examples of a task as they were written, and finds what must not be: an example in two splits, a queried
/// key that was bound anew, a target that is not the answer. It knows nothing of how they were made.
class RecallAudit {
 public:
  explicit RecallAudit(const RecallTask& task) : task_(task) {}

  /// Examples [n, task.length()] of a split; a split's examples may come in several calls.
  void add(const std::string& split, std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets);
  RecallFindings finish();

 private:
  const RecallTask& task_;
  RecallFindings findings_;
  std::vector<std::pair<std::string, std::vector<Digest>>> splits_;
};

}  // namespace quipu
