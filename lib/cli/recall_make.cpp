#include "cli/recall_make.h"

#include <algorithm>

#include "base/log.h"
#include "cli/console.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "store/text_dataset.h"
#include "text/byte_tokenizer.h"
#include "text/text_reader.h"

namespace quipu {
namespace {

constexpr const char* kMakeHelp =
    R"(Makes a task as a dataset of scored examples, split into train, valid and test; `train` trains on it and
`recall-bench run` scores a model. `recall-bench list` shows the tasks with their parameters.

An example is a function of the task's parameters, the seed and its index. An example's split follows from a fingerprint
of its tokens, so that no example can stand in two splits, also not in files of different seeds or sizes. The same
command makes the same file, to the last byte.

A story of babilong stands in one split, too, where several are asked for; where only one is, it has all stories. A story
that is longer than an example is left out, and a warning says how many are.

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

std::string read_file(const std::string& path, std::vector<std::string>& data) {
  std::string text = read_text(path);
  data.push_back(digest_of(std::as_bytes(std::span(text))).hex() + " " + path);
  return text;
}

/// Reads the texts of a task in one.
void read_inputs(RecallMakeOptions& o) {
  RecallFileSpec& spec = o.spec;
  HaystackInputs inputs = standard_inputs(spec.task);
  const bool stories = spec.task == "babilong";
  if (o.texts.empty() && inputs.filler.empty())
    throw UsageError("--text: {} hides something in a text; give one", spec.task);
  if (stories == o.stories.empty())
    throw UsageError("--babi: {}", stories ? "babilong tells stories of bAbI; give a file of its format"
                                           : spec.task + " has no such stories; leave it out");
  if (stories && (o.needle || o.question || o.answer))
    throw UsageError("--needle, --question, --answer: babilong has those of its stories; leave them out");
  if (o.tokenizer == "bytes")
    inputs.tokenizer = std::make_shared<ByteTokenizer>();
  else
    inputs.tokenizer = load_tokenizer(o.tokenizer);
  spec.options.emplace_back("tokenizer", o.tokenizer);
  if (!o.texts.empty()) inputs.filler.clear();
  for (const std::string& path : o.texts) {
    inputs.filler += read_file(path, spec.data);
    spec.options.emplace_back("text", path);
  }
  for (const std::string& path : o.stories) {
    for (BabiQuestion& story : parse_babi(read_file(path, spec.data), path)) inputs.stories.push_back(std::move(story));
    spec.options.emplace_back("babi", path);
  }
  for (const auto& [name, given, text] : {std::tuple{"needle", &o.needle, &inputs.needle},
                                          {"question", &o.question, &inputs.question},
                                          {"answer", &o.answer, &inputs.answer}}) {
    if (!*given) continue;
    *text = **given;
    spec.options.emplace_back(name, **given);
  }
  inputs.split_stories = (spec.train > 0) + (spec.valid > 0) + (spec.test > 0) > 1;
  spec.inputs = std::move(inputs);
}

}  // namespace

void complete_task(RecallMakeOptions& o, std::uint64_t seed) {
  RecallFileSpec& spec = o.spec;
  const RecallTaskKind& kind = recall_task_kind(spec.task);
  spec.values = parse_given(kind, o.values);
  spec.seed = seed;
  const bool in_text = kind.make == nullptr;
  spec.train = o.train.value_or(in_text ? 0 : 100000);
  spec.valid = o.valid.value_or(in_text ? 0 : 1000);
  spec.test = o.test.value_or(in_text ? 100 : 3000);
  if (in_text)
    read_inputs(o);
  else if (!o.texts.empty() || !o.stories.empty() || o.needle || o.question || o.answer || o.tokenizer != "bytes")
    throw UsageError("{}: is made of tokens, and no text stands in it; leave out --text and what goes with it",
                     kind.name);
}

namespace {

Status run_make(RecallMakeOptions& o, const Common& common) {
  RecallFileSpec& spec = o.spec;
  refuse_terminal_output(spec.output);
  for (const auto& inputs : {o.texts, o.stories, {o.tokenizer}}) refuse_input_as_output(spec.output, inputs);
  complete_task(o, common.seed);
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
    if (!o.stories.empty()) json["questions_left_out"] = summary.left_out;
    for (const auto& [name, count] : summary.splits) json[name + "_examples"] = count;
    for (const auto& [name, count] : found.distinct) json[name + "_distinct"] = count;
    json["overlap"] = found.overlap;
    json["rebinding"] = found.faults.rebindings;
    json["wrong_answers"] = found.faults.wrong;
    print_json(json, stream);
    return Status::kDone;
  }
  if (summary.left_out > 0)
    log_warning("--length {}: {} of {} questions have longer stories and are left out: what is measured is easier",
                summary.length, grouped(summary.left_out), grouped(static_cast<Index>(spec.inputs->stories.size())));
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
  const Section main = make.section();
  add_argument(main, "TASK", o.spec.task, true, "one of those that list shows");
  required(add_text(main, "-o,--output", o.spec.output, "TASK.h5", "the dataset; - for standard output"));
  add_task_options(make, main, o);
  make.runs([&](const Common& common) { return run_make(o, common); });
}

void add_task_options(const Command& make, const Section& main, RecallMakeOptions& o) {
  const Section parameters = make.section("Parameters of the task");
  add_count(main, "--train", o.train, 0, kMaxCount, "examples to train on (default: 100000, in a text 0)");
  add_count(main, "--valid", o.valid, 0, kMaxCount, "examples to choose by (default: 1000, in a text 0)");
  add_count(main, "--test", o.test, 0, kMaxCount, "examples to measure on (default: 3000, in a text 100)");
  add_parameters(parameters, o.values);
  const Section text = make.section("Tasks in a text");
  add_text(text, "--tokenizer", o.tokenizer, "bytes|FILE", "of the model that is to be measured: its checkpoint");
  add_texts(text, "--text", o.texts, "FILE", "text to hide something in, plain or gzip; may be given several times");
  add_texts(text, "--babi", o.stories, "FILE", "stories in bAbI's format; may be given several times");
  add_text(text, "--needle", o.needle, "TEXT", "what is hidden; {k} is a number of its own in each example");
  add_text(text, "--question", o.question, "TEXT", "what stands at the end");
  add_text(text, "--answer", o.answer, "TEXT", "what is scored behind a blank after it");
}

void add_recall_list(Command& tool) {
  Command& list = tool.command("list", "list the tasks with their parameters and standard values");
  list.runs(run_list);
}

}  // namespace quipu
