#include "text/recall_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/number.h"
#include "text/haystack_task.h"
#include "text/recall_bindings.h"
#include "text/recall_sequences.h"
#include "text/word_tokenizer.h"

namespace quipu {
namespace {

const TaskParameter& parameter_of(const RecallTaskKind& kind, const std::string& name) {
  for (const TaskParameter& p : kind.parameters)
    if (p.name == name) return p;
  std::vector<std::string> names;
  for (const TaskParameter& p : kind.parameters) names.push_back("--" + p.name);
  throw UsageError("--{}: {} has no such parameter; it has {}", name, kind.name, fmt::join(names, ", "));
}

}  // namespace

Digest RecallTask::draw_identified(Draw& source, std::span<std::int32_t> inputs,
                                   std::span<std::int32_t> targets) const {
  draw(source, inputs, targets);
  return digest_of(std::as_bytes(inputs));
}

TokenizerData RecallTask::tokenizer() const {
  std::vector<std::string> words;
  for (Index token = kFirstSymbol; token < vocab(); ++token) words.push_back(symbol(static_cast<std::int32_t>(token)));
  return WordTokenizer(std::move(words)).serialize();
}

const std::vector<RecallTaskKind>& recall_task_kinds() {
  static const std::vector<RecallTaskKind> kinds = [] {
    std::vector<RecallTaskKind> all = binding_task_kinds();
    for (RecallTaskKind& kind : sequence_task_kinds()) all.push_back(std::move(kind));
    for (const RecallTaskKind& kind : haystack_task_kinds()) all.push_back(kind);
    return all;
  }();
  return kinds;
}

const RecallTaskKind& recall_task_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const RecallTaskKind& kind : recall_task_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw UsageError("task '{}': is unknown; there are {}", name, fmt::join(names, ", "));
}

TaskValues complete_values(const RecallTaskKind& kind, TaskValues values) {
  for (const auto& [name, value] : values) {
    const TaskParameter& p = parameter_of(kind, name);
    const double most = p.choices.empty() ? p.max : static_cast<double>(p.choices.size()) - 1;
    const double least = p.choices.empty() ? p.min : 0;
    if (!(value >= least && value <= most)) throw UsageError("--{} {}: is not from {} to {}", name, value, least, most);
    if (p.whole && value != std::floor(value)) throw UsageError("--{} {}: is no whole number", name, value);
  }
  for (const TaskParameter& p : kind.parameters)
    if (p.standard) values.try_emplace(p.name, *p.standard);
  return values;
}

std::unique_ptr<RecallTask> make_recall_task(const std::string& name, const TaskValues& values) {
  const RecallTaskKind& kind = recall_task_kind(name);
  if (kind.make == nullptr) throw UsageError("task '{}': stands in a text, and there is none", name);
  return kind.make(complete_values(kind, values));
}

std::string values_text(const RecallTaskKind& kind, const TaskValues& values) {
  std::vector<std::string> words;
  for (const auto& [name, value] : values) {
    const TaskParameter& p = parameter_of(kind, name);
    words.push_back(p.choices.empty() ? fmt::format("{}={}", name, value)
                                      : fmt::format("{}={}", name, p.choices.at(static_cast<std::size_t>(value))));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

TaskValues parse_values(const RecallTaskKind& kind, const std::string& text) {
  TaskValues values;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const std::size_t at = std::min(word.find('='), word.size() - 1);
    const std::string name = word.substr(0, at), value = word.substr(at + 1);
    const TaskParameter& p = parameter_of(kind, name);
    const auto choice = std::ranges::find(p.choices, value);
    if (!p.choices.empty() && choice == p.choices.end())
      throw UsageError("--{} {}: is unknown; there are {}", name, value, fmt::join(p.choices, ", "));
    values[name] = p.choices.empty() ? parse_real("--" + name, value, any_real())
                                     : static_cast<double>(choice - p.choices.begin());
  }
  return values;
}

}  // namespace quipu
