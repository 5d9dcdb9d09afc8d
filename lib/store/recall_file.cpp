#include "store/recall_file.h"

#include <algorithm>

#include "base/error.h"
#include "text/recall_examples.h"

namespace quipu {
namespace {

constexpr Index kBlockTokens = 1 << 20;

Index count_of(const RecallFileSpec& spec, const std::string& split) {
  return split == "train" ? spec.train : split == "valid" ? spec.valid : spec.test;
}

std::string command_of(const RecallFileSpec& spec, const std::string& values) {
  std::string command = "recall-bench make " + spec.task;
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t end = std::min(values.find(' ', at), values.size());
    std::string word = values.substr(at, end - at);
    word[word.find('=')] = ' ';
    command += " --" + word;
    at = end + 1;
  }
  for (const auto& [name, value] : spec.options) command += fmt::format(" --{} '{}'", name, value);
  return command +
         fmt::format(" --train {} --valid {} --test {} --seed {}", spec.train, spec.valid, spec.test, spec.seed);
}

/// Where the answer of each example stood; -1: not known.
std::vector<std::int32_t> sources_of(const RecallTask& task, std::span<const std::int32_t> inputs,
                                     std::span<const std::int32_t> targets) {
  const auto length = static_cast<std::size_t>(task.length());
  std::vector<std::int32_t> sources(inputs.size() / length);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto row = targets.subspan(i * length, length);
    const auto scored = std::ranges::find_if(row, [](std::int32_t t) { return t != -1; });
    sources[i] = static_cast<std::int32_t>(task.source_of(inputs.subspan(i * length, length), scored - row.begin()));
  }
  return sources;
}

}  // namespace

void write_task_facts(DatasetWriter& writer, const TaskFacts& facts) {
  writer.task_fact("name", facts.name);
  writer.task_fact("parameters", facts.parameters);
  writer.task_fact("seed", facts.seed);
  writer.task_fact("chance", facts.chance);
  writer.task_fact("ceiling", facts.ceiling);
  writer.task_fact("metric", std::string(facts.whole_examples ? "examples" : "tokens"));
  if (facts.chance_among_seen) writer.task_fact("chance_among_seen", *facts.chance_among_seen);
}

std::optional<TaskFacts> read_task_facts(const Dataset& dataset) {
  const H5Reader& file = dataset.file();
  if (!file.has("/task")) return std::nullopt;
  const auto& attributes = file.entry("/task").attributes;
  const auto real = [&](const char* name) -> std::optional<double> {
    const auto at = attributes.find(name);
    if (at == attributes.end() || !std::holds_alternative<double>(at->second)) return std::nullopt;
    return std::get<double>(at->second);
  };
  TaskFacts facts{.name = file.text_attribute("/task", "name"),
                  .parameters = file.text_attribute("/task", "parameters"),
                  .seed = file.unsigned_attribute("/task", "seed"),
                  .chance_among_seen = real("chance_among_seen"),
                  .whole_examples = file.text_attribute("/task", "metric") == "examples"};
  const auto chance = real("chance"), ceiling = real("ceiling");
  if (!chance || !ceiling)
    throw InputError("{}: its task {} says neither chance nor ceiling; make it again", file.name(), facts.name);
  facts.chance = *chance, facts.ceiling = *ceiling;
  return facts;
}

Provenance recall_provenance(const RecallFileSpec& spec) {
  const RecallTaskKind& kind = recall_task_kind(spec.task);
  return {{command_of(spec, values_text(kind, complete_values(kind, spec.values)))}, spec.data};
}

RecallFileSummary make_recall_file(const RecallFileSpec& spec) {
  const RecallTaskKind& kind = recall_task_kind(spec.task);
  const TaskValues values = complete_values(kind, spec.values);
  if ((kind.make == nullptr) != spec.inputs.has_value()) throw InternalError("{}: a task's texts are amiss", kind.name);
  const std::unique_ptr<RecallTask> task =
      spec.inputs ? make_haystack_task(spec.task, values, *spec.inputs) : kind.make(values);
  const std::string parameters = values_text(kind, values);
  DatasetWriter writer(spec.output, task->tokenizer(), task->vocab(), recall_provenance(spec), creation_time(0));
  write_task_facts(writer, {.name = spec.task,
                            .parameters = parameters,
                            .seed = spec.seed,
                            .chance = task->chance(),
                            .ceiling = 1,
                            .chance_among_seen = task->chance_among_seen(),
                            .whole_examples = task->whole_examples()});
  RecallFileSummary summary{task->vocab(), task->length(), task->chance(), task->left_out(), {}, {}};
  RecallAudit audit(*task);
  const Index length = task->length(), block = std::max<Index>(1, kBlockTokens / length);
  std::vector<std::int32_t> inputs, targets;
  Index made = 0;
  for (const std::string& split : kTaskSplits) {
    const Index count = count_of(spec, split);
    if (count == 0) continue;
    SplitWriter& out = writer.split(split);
    for (Index first = 0; first < count; first += block) {
      const Index rows = std::min(block, count - first);
      inputs.resize(static_cast<std::size_t>(rows * length));
      targets.resize(inputs.size());
      draw_examples(*task, spec.seed, split, first, inputs, targets);
      audit.add(split, inputs, targets);
      out.append_examples(inputs, targets, length);
      if (spec.inputs) out.append_sources(sources_of(*task, inputs, targets));
      if (spec.on_progress) spec.on_progress(made += rows);
    }
    summary.splits.emplace_back(split, count);
  }
  if (made == 0 && summary.splits.empty())
    throw UsageError("--train 0 --valid 0 --test 0: no example is asked for; give one of them");
  summary.findings = audit.finish();
  if (!summary.findings.clean())
    throw InternalError("{}: the audit of {} examples found {}", spec.task, summary.findings.examples,
                        summary.findings.text());
  writer.commit();
  return summary;
}

}  // namespace quipu
