#include "cli/sweep_plan.h"

#include <algorithm>

#include "cli/mixer_list.h"
#include "cli/report.h"
#include "mixers/registry.h"

namespace quipu {
namespace {

template <typename T, typename Parse>
std::vector<T> parse_values(const std::string& option, const std::string& text, const Parse& parse) {
  std::vector<T> values;
  for (const std::string& word : parse_list(option, text)) values.push_back(static_cast<T>(parse(option, word)));
  return values;
}

Index parse_size(const std::string& option, const std::string& word) { return parse_integer(option, word, 1, 1 << 20); }

/// The parts of hybrids are joined by a plus, for commas part the list.
std::vector<std::string> parse_mixers(const std::string& text) {
  std::vector<std::string> mixers = parse_list("--mixer", text);
  for (std::string& mixer : mixers) {
    std::ranges::replace(mixer, '+', ',');
    for (const std::string& name : names_in_pattern(mixer)) find_mixer(name, false);
  }
  return mixers;
}

std::vector<std::pair<std::string, std::vector<std::string>>> parse_settings(const std::vector<std::string>& set) {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  for (const std::string& setting : set) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--set {}: is not KEY=VALUE,VALUE,.., as in slots=16,64", setting);
    const std::string key = setting.substr(0, equals);
    std::erase_if(options, [&](const auto& option) { return option.first == key; });
    options.emplace_back(key, parse_list("--set " + key, setting.substr(equals + 1)));
  }
  return options;
}

/// Of "gsa.heads", the mixer; of any other key, nothing.
std::optional<std::string> mixer_of_heads(const std::string& key) {
  const std::string end = ".heads";
  if (!key.ends_with(end)) return std::nullopt;
  return key.substr(0, key.size() - end.size());
}

bool has_parameter(const RecallTaskKind& kind, const std::string& name) {
  return std::ranges::any_of(kind.parameters, [&](const TaskParameter& p) { return p.name == name; });
}

/// "mqar_length64_pairs4": the task with those parameters that were given.
std::string stem_of(const RecallMakeOptions& make) {
  const RecallTaskKind& kind = recall_task_kind(make.spec.task);
  std::string stem = kind.name;
  for (const auto& [name, value] : make.values) {
    std::string word = values_text(kind, parse_values(kind, name + "=" + value));
    word.erase(word.find('='), 1);
    stem += "_" + word;
  }
  return stem;
}

void check_splits(const RecallFileSpec& spec) {
  for (const auto& [name, count] : {std::pair{"train", spec.train}, {"valid", spec.valid}, {"test", spec.test}})
    if (count == 0)
      throw UsageError("--{}: {} has no examples to {}; give some", name, spec.task,
                       name == std::string("train")   ? "train on"
                       : name == std::string("valid") ? "choose by"
                                                      : "measure on");
}

/// Row `row` of the lists that say what the tasks are.
RecallMakeOptions task_of(const RecallSweepOptions& o, const std::vector<std::string>& names, std::size_t row) {
  RecallMakeOptions make = o.make;
  make.spec.task = names.size() == 1 ? names.front() : names[row];
  const RecallTaskKind& kind = recall_task_kind(make.spec.task);
  make.values.clear();
  for (const auto& [name, text] : o.make.values) {
    const std::vector<std::string> list = parse_list("--" + name, text);
    const bool known = std::ranges::any_of(
        names, [&](const std::string& task) { return has_parameter(recall_task_kind(task), name); });
    if (has_parameter(kind, name) || !known) make.values[name] = list.size() == 1 ? list.front() : list[row];
  }
  return make;
}

void plan_tasks(const RecallSweepOptions& o, const Common& common, SweepPlan& plan, SweepAxes& axes) {
  const std::vector<std::string> names = parse_list("--task", o.tasks);
  std::vector<std::pair<std::string, std::size_t>> lengths{{"task", names.size()}};
  for (const auto& [name, text] : o.make.values) lengths.emplace_back(name, parse_list("--" + name, text).size());
  const std::size_t rows = rows_together(lengths);
  for (std::size_t row = 0; row < rows; ++row) {
    RecallMakeOptions make = task_of(o, names, row);
    const std::string stem = stem_of(make);
    complete_task(make, common.seed);
    check_splits(make.spec);
    make.spec.output = fmt::format("{}/tasks/{}.h5", o.folder, stem);
    axes.tasks.push_back(stem);
    plan.tasks.push_back(make.spec);
  }
}

Index length_of(const RecallFileSpec& spec) {
  const RecallTaskKind& kind = recall_task_kind(spec.task);
  if (kind.make != nullptr) return kind.make(spec.values)->length();
  return static_cast<Index>(spec.values.at("length"));
}

/// How long a point takes, in no unit: what its size says.
std::vector<double> costs_of(const SweepPlan& plan) {
  std::vector<double> lengths, costs;
  for (const RecallFileSpec& task : plan.tasks) lengths.push_back(static_cast<double>(length_of(task)));
  for (const SweepPoint& p : plan.grid.points)
    costs.push_back(lengths[p.task] * static_cast<double>(p.layers) * static_cast<double>(p.dim));
  return costs;
}

std::vector<std::size_t> choose_cells(const RecallSweepOptions& o, const SweepPlan& plan) {
  const auto all = static_cast<Index>(plan.grid.cells.size());
  const std::vector<double> costs = costs_of(plan);
  if (!o.cells.empty()) {
    const std::size_t slash = o.cells.find('/');
    if (slash == std::string::npos) throw UsageError("--cells {}: is no share, as in 2/8", o.cells);
    return share_of(plan.grid, costs, parse_integer("--cells", o.cells.substr(0, slash), 1, kMaxCount),
                    parse_integer("--cells", o.cells.substr(slash + 1), 1, kMaxCount));
  }
  std::vector<std::size_t> cells;
  if (o.cell.empty()) {
    for (Index i = 0; i < all; ++i) cells.push_back(static_cast<std::size_t>(i));
    return cells;
  }
  for (const std::string& word : parse_list("--cell", o.cell))
    cells.push_back(static_cast<std::size_t>(parse_integer("--cell", word, 1, all) - 1));
  std::ranges::sort(cells);
  cells.erase(std::ranges::unique(cells).begin(), cells.end());
  return cells;
}

}  // namespace

SweepPlan plan_sweep(const RecallSweepOptions& o, const Command& command, const Common& common) {
  if (o.folder.empty()) throw UsageError("FOLDER: is empty; say where the sweep is to be kept");
  SweepPlan plan{
      .grid = {}, .tasks = {}, .train = o.train, .words = training_words(command), .mine = {}, .common = common};
  SweepAxes axes;
  plan_tasks(o, common, plan, axes);
  axes.mixers = parse_mixers(o.mixers);
  axes.options = parse_settings(o.set);
  axes.layers = parse_values<Index>("--layers", o.layers, parse_size);
  axes.dims = parse_values<Index>("--dim", o.dims, parse_size);
  axes.rates = parse_values<double>("--lr", o.rates, [](const std::string& option, const std::string& word) {
    return parse_real(option, word, above(0));
  });
  axes.seeds = parse_values<std::uint64_t>("--seeds", o.seeds, [](const std::string& option, const std::string& word) {
    return parse_integer(option, word, 0, kMaxCount);
  });
  plan.grid = make_grid(axes, [&](const std::string& mixer, const std::string& key) {
    if (const auto owner = mixer_of_heads(key)) return std::ranges::count(names_in_pattern(mixer), *owner) > 0;
    return pattern_takes(mixer, o.train.channel_mixer.value_or(""), key);
  });
  plan.mine = choose_cells(o, plan);
  return plan;
}

TrainRequest request_of(const SweepPlan& plan, const SweepCell& cell, double rate) {
  const SweepPoint& point = plan.grid.points[cell.point];
  TrainRequest request = plan.train;
  request.data = plan.tasks[point.task].output;
  request.mixer = point.mixer;
  for (const std::string& setting : point.set) {
    const std::string key = setting.substr(0, setting.find('='));
    if (mixer_of_heads(key))
      request.heads = parse_integer("--set " + key, setting.substr(key.size() + 1), 1, 1 << 20);
    else
      request.set.push_back(setting);
  }
  request.layers = point.layers;
  request.dim = point.dim;
  request.train.schedule.peak = rate;
  request.train.output.assign(1, '-');
  return request;
}

SweepSeal seal_of(const SweepPlan& plan, const SweepCell& cell, double rate) {
  Common common = plan.common;
  common.seed = cell.seed;
  const TrainOptions o = resolve(request_of(plan, cell, rate), common);
  const Provenance origin = recall_provenance(plan.tasks[plan.grid.points[cell.point].task]);
  SweepSeal seal{origin.commands.front(), o.model, settings_of(o, "")};
  for (const std::string& line : origin.data) seal.task += "\n" + line;
  seal.settings.erase("data");
  seal.settings["--eval-every"] = fmt::format("{}", o.eval_every);
  seal.settings["--eval-tokens"] = fmt::format("{}", o.eval_tokens);
  seal.settings["--stop-below"] = o.stop_below_nats ? fmt::format("{}", *o.stop_below_nats) : "none";
  return seal;
}

std::string to_json(const SweepSeal& seal) {
  Json json;
  json["schema"] = "quipu-recall-sweep-cell-1";
  json["task"] = seal.task;
  json["model"] = Json::parse(to_json(seal.model));
  json["settings"] = seal.settings;
  return json.dump(2) + "\n";
}

SweepSeal seal_from_json(const std::string& text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    return {json.at("task").get<std::string>(), config_from_json(json.at("model").dump()),
            json.at("settings").get<std::map<std::string, std::string>>()};
  } catch (const Json::exception& error) {
    throw InputError("{}: does not say what its cell is ({}); remove its folder", where, error.what());
  }
}

std::optional<Difference> difference(const SweepSeal& here, const SweepSeal& there) {
  if (here.task != there.task) return Difference{"the task", here.task, there.task};
  std::vector<Difference> all = differences(here.model, there.model);
  for (Difference& d : differences(here.settings, there.settings)) all.push_back(std::move(d));
  if (all.empty()) return std::nullopt;
  return all.front();
}

}  // namespace quipu
