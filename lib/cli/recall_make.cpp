#include "cli/recall_make.h"

#include <algorithm>

#include "base/log.h"
#include "cli/console.h"
#include "cli/convert_text.h"
#include "cli/progress.h"
#include "cli/report.h"

namespace quipu {
namespace {

constexpr const char* kMakeHelp =
    R"(Makes a task as a dataset of scored examples, split into train, valid and test; `train` trains on it and
`recall-bench run` scores a model. `recall-bench list` shows the tasks with their parameters.

An example is a function of the task's parameters, the seed and its index. An example's split follows from a fingerprint
of its tokens, so that no example can stand in two splits, also not in files of different seeds or sizes. The same
command makes the same file, to the last byte.

All that is made is audited before the file appears: every example is read again, its answer worked out from its tokens
alone, and the splits are compared. The audit's line says how many examples are in two splits (overlap), how many
queried keys were bound to something else before the query (re-binding), and how many targets are not the answer.)";

/// How a parameter is shown: its tasks with their standard values.
std::string standards_of(const std::string& name) {
  std::string text;
  for (const RecallTaskKind& kind : recall_task_kinds())
    for (const TaskParameter& p : kind.parameters) {
      if (p.name != name) continue;
      std::string standard = p.standard_text;
      if (p.standard)
        standard =
            p.choices.empty() ? fmt::format("{}", *p.standard) : p.choices.at(static_cast<std::size_t>(*p.standard));
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind.name, standard);
    }
  return text;
}

void add_parameters(const Section& section, std::map<std::string, std::string>& values) {
  std::vector<std::string> known;
  for (const RecallTaskKind& kind : recall_task_kinds())
    for (const TaskParameter& p : kind.parameters) {
      if (std::ranges::find(known, p.name) != known.end()) continue;
      known.push_back(p.name);
      const std::string metavar = !p.choices.empty() ? fmt::format("{}", fmt::join(p.choices, "|"))
                                  : p.whole          ? "N"
                                                     : "X";
      add_value(section, {"--" + p.name, metavar, p.help, standards_of(p.name)},
                [&values, name = p.name](const std::string& text) { values[name] = text; });
    }
}

TaskValues parse_given(const RecallTaskKind& kind, const std::map<std::string, std::string>& given) {
  TaskValues values;
  for (const auto& [name, text] : given) values.merge(parse_values(kind, name + "=" + text));
  return complete_values(kind, values);
}

Status run_make(RecallMakeOptions& o, const Common& common) {
  RecallFileSpec& spec = o.spec;
  refuse_terminal_output(spec.output);
  spec.values = parse_given(recall_task_kind(spec.task), o.values);
  spec.seed = common.seed;
  Progress progress("make", "examples", static_cast<double>(spec.train + spec.valid + spec.test));
  spec.on_progress = [&](Index examples) { progress.update(static_cast<double>(examples)); };
  const RecallFileSummary summary = make_recall_file(spec);
  progress.finish();

  const Stream stream = spec.output == "-" ? Stream::kError : Stream::kOutput;
  const RecallFindings& found = summary.findings;
  if (common.json) {
    Json json = json_report("recall-bench-make", 1);
    json["task"] = spec.task;
    json["seed"] = spec.seed;
    json["vocab"] = summary.vocab;
    json["length"] = summary.length;
    json["chance"] = summary.chance;
    json["ceiling"] = 1.0;
    for (const auto& [name, count] : summary.splits) json[name + "_examples"] = count;
    for (const auto& [name, count] : found.distinct) json[name + "_distinct"] = count;
    json["overlap"] = found.overlap;
    json["rebinding"] = found.faults.rebindings;
    json["wrong_answers"] = found.faults.wrong;
    print_json(json, stream);
    return Status::kDone;
  }
  if (stream == Stream::kError && common.quiet) return Status::kDone;
  std::string splits;
  for (std::size_t i = 0; i < summary.splits.size(); ++i)
    splits += fmt::format("{}{} {} ({} different)", i > 0 ? ", " : "", summary.splits[i].first,
                          grouped(summary.splits[i].second), grouped(found.distinct[i].second));
  print_text(
      fmt::format("{}: vocabulary {}, length {}, chance {:.4g}, ceiling 1, seed {}\nexamples: {}\naudit of {}: {}\n",
                  spec.task, grouped(summary.vocab), grouped(summary.length), summary.chance, spec.seed, splits,
                  grouped(found.examples), found.text()),
      stream);
  return Status::kDone;
}

Json parameters_json(const RecallTaskKind& kind) {
  Json list = Json::array();
  for (const TaskParameter& p : kind.parameters) {
    Json json{{"name", p.name}, {"help", p.help}};
    if (!p.choices.empty())
      json["choices"] = p.choices, json["default"] = p.choices.at(static_cast<std::size_t>(p.standard.value_or(0)));
    else if (p.standard)
      json["default"] = *p.standard;
    else
      json["default"] = p.standard_text;
    list.push_back(json);
  }
  return list;
}

Status run_list(const Common& common) {
  if (common.json) {
    Json json = json_report("recall-bench-list", 1);
    json["tasks"] = Json::array();
    for (const RecallTaskKind& kind : recall_task_kinds())
      json["tasks"].push_back({{"name", kind.name},
                               {"summary", kind.summary},
                               {"source", kind.source},
                               {"parameters", parameters_json(kind)}});
    print_json(json);
    return Status::kDone;
  }
  Table table({"task", "parameters", "what it asks", "source"});
  for (const RecallTaskKind& kind : recall_task_kinds()) {
    std::vector<std::string> words;
    for (const TaskParameter& p : kind.parameters) {
      const std::string standard = !p.standard          ? p.standard_text
                                   : !p.choices.empty() ? p.choices.at(static_cast<std::size_t>(*p.standard))
                                                        : fmt::format("{}", *p.standard);
      words.push_back(p.name + "=" + standard);
    }
    table.row({kind.name, fmt::format("{}", fmt::join(words, " ")), kind.summary, kind.source});
  }
  print_table(table);
  return Status::kDone;
}

}  // namespace

void add_recall_make(Command& tool, RecallMakeOptions& o) {
  Command& make = tool.command("make", "make a task", kMakeHelp);
  const Section main = make.section(), parameters = make.section("Parameters of the task");
  add_argument(main, "TASK", o.spec.task, true, "one of those that list shows");
  required(add_text(main, "-o,--output", o.spec.output, "TASK.h5", "the dataset; - for standard output"));
  add_count(main, "--train", o.spec.train, 0, kMaxCount, "examples to train on");
  add_count(main, "--valid", o.spec.valid, 0, kMaxCount, "examples to choose by");
  add_count(main, "--test", o.spec.test, 0, kMaxCount, "examples to measure on");
  add_parameters(parameters, o.values);
  make.runs([&](const Common& common) { return run_make(o, common); });
}

void add_recall_list(Command& tool) {
  Command& list = tool.command("list", "list the tasks with their parameters and standard values");
  list.runs(run_list);
}

}  // namespace quipu
