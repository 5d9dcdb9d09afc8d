#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/babi_stories.h"
#include "text/recall_task.h"
#include "text/tokenizer.h"

namespace quipu {

/// What a task in a text is made of.
struct HaystackInputs {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string filler;                    ///< the text, whole
  std::string needle, question, answer;  ///< `{k}` in them is a number of its own in each example
  std::vector<BabiQuestion> stories;     ///< of babilong
  bool split_stories = true;             ///< a story is in one split; else each split has all of them, in other text
};

/// Kinds of tasks in a text: passkey, needle, babilong. Their `make` is null.
const std::vector<RecallTaskKind>& haystack_task_kinds();

/// The texts of a kind where none are given; of passkey and needle.
HaystackInputs standard_inputs(const std::string& kind);

/// Makes a task. An example is a stretch of the text, from anywhere in it (and around its end), with the needle or the
/// facts at ends of sentences, and the question behind; the answer's tokens are scored.
/// Throws UsageError where needle and question do not fit the length, or there is no text.
std::unique_ptr<RecallTask> make_haystack_task(const std::string& kind, const TaskValues& values,
                                               const HaystackInputs& inputs);

}  // namespace quipu
