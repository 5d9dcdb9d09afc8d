#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "text/recall_draw.h"
#include "text/tokenizer_data.h"

namespace quipu {

/// Tasks made of tokens that ask a model for something that it read before. Token 0 is a blank that means nothing,
/// token 1 a mark that asks for the answer; symbols follow.
inline constexpr std::int32_t kBlankToken = 0;
inline constexpr std::int32_t kMarkToken = 1;
inline constexpr std::int32_t kFirstSymbol = 2;

/// What a task can be told: a whole number, a real one, or (where there are choices) the place of a word among them.
struct TaskParameter {
  std::string name;  ///< "pairs"
  std::string help;
  std::optional<double> standard;  ///< none: follows from the others, as `standard_text` says
  std::string standard_text = {};
  double min = 1, max = 1e9;
  bool whole = true;
  std::vector<std::string> choices = {};
};

/// Values by the parameter's name.
using TaskValues = std::map<std::string, double>;

/// What an example's tokens say about it, found without knowing how it was made.
struct TaskFaults {
  Index rebindings = 0;  ///< queried keys that were bound to something else before the query
  Index wrong = 0;       ///< targets that are not what the example asks for
};

/// A task with all its parameters.
class RecallTask {
 public:
  virtual ~RecallTask() = default;

  /// Tokens of the vocabulary, and of an example.
  virtual Index vocab() const = 0;
  virtual Index length() const = 0;
  /// What a symbol (kFirstSymbol or above) is called.
  virtual std::string symbol(std::int32_t token) const = 0;
  /// The accuracy, per scored token, of the best guess that knows the task and what stands in its answer so far, but
  /// nothing of what the example asks to remember.
  virtual double chance() const = 0;
  /// The same of a guess that knows which answers stood in the example, but not where; none where that is no question.
  virtual std::optional<double> chance_among_seen() const { return std::nullopt; }

  /// Makes one example: inputs and targets [length()], targets -1 where nothing is scored.
  virtual void draw(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const = 0;
  /// Works the answers out from the inputs, in another way than `draw` made them.
  virtual TaskFaults check(std::span<const std::int32_t> inputs, std::span<const std::int32_t> targets) const = 0;
  /// Where the answer that is asked for at position t stood; -1 where it stood nowhere.
  virtual Index source_of(std::span<const std::int32_t> inputs, Index t) const = 0;

  /// The same, with a fingerprint of what the example asks: examples that ask the same have the same, and stand in the
  /// same split. That of the inputs, unless a task knows better.
  virtual Digest draw_identified(Draw& draw, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) const;

  /// A tokenizer of the kind `words` that has the vocabulary's tokens as words; that of its text for a task in one.
  virtual TokenizerData tokenizer() const;
  /// Of the questions that were given to ask, those whose stories are longer than an example: they are not asked.
  virtual Index left_out() const { return 0; }
  /// Whether an answer is several tokens that are right together.
  virtual bool whole_examples() const { return false; }
};

/// A kind of task.
struct RecallTaskKind {
  std::string name;     ///< "mqar"
  std::string summary;  ///< one line
  std::string source;   ///< where it comes from
  std::vector<TaskParameter> parameters;
  std::unique_ptr<RecallTask> (*make)(const TaskValues& values);  ///< null: a task in a text (haystack_task.h)
};

/// All kinds, in the order in which they are listed.
const std::vector<RecallTaskKind>& recall_task_kinds();
/// Throws UsageError, naming those there are.
const RecallTaskKind& recall_task_kind(const std::string& name);
/// The values given, with the standard ones of the rest. Throws UsageError for a parameter that the kind has not, or a
/// value out of its range.
TaskValues complete_values(const RecallTaskKind& kind, TaskValues values);
/// Throws UsageError where the values do not go together.
std::unique_ptr<RecallTask> make_recall_task(const std::string& name, const TaskValues& values);

/// "filler=blank length=64 pairs=4": all values, as words; and back.
std::string values_text(const RecallTaskKind& kind, const TaskValues& values);
TaskValues parse_values(const RecallTaskKind& kind, const std::string& text);

}  // namespace quipu
