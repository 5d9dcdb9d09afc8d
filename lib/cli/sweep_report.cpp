#include "cli/sweep_report.h"

#include <algorithm>
#include <cmath>

namespace quipu {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kCollectPatience_s = 60;

/// What is known of a cell before it runs.
Json cell_facts(const SweepPlan& plan, std::size_t cell, double rate) {
  const SweepCell& c = plan.grid.cells[cell];
  const SweepPoint& p = plan.grid.points[c.point];
  const RecallFileSpec& task = plan.tasks[p.task];
  const RecallTaskKind& kind = recall_task_kind(task.task);
  Json json = json_report("recall-sweep", 1);
  json["cell"] = plan.grid.name(c, rate);
  json["outcome"] = "done";
  json["chosen"] = Json();
  json["task"] = task.task;
  json["task_parameters"] = values_text(kind, complete_values(kind, task.values));
  json["task_seed"] = task.seed;
  json["mixer"] = p.mixer;
  json["options"] = fmt::format("{}", fmt::join(p.set, " "));
  json["layers"] = p.layers;
  json["dim"] = p.dim;
  json["lr"] = rate;
  json["seed"] = c.seed;
  return json;
}

std::string cell_text(const Json& value) {
  if (value.is_null()) return "NA";
  if (!value.is_string()) return value.dump();
  std::string text = value.get<std::string>();
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

std::string task_text(const SweepPlan& plan, std::size_t task) {
  const RecallFileSpec& spec = plan.tasks[task];
  const RecallTaskKind& kind = recall_task_kind(spec.task);
  return fmt::format("{}, {}", spec.task, values_text(kind, complete_values(kind, spec.values)));
}

std::string mixer_text(const SweepPoint& p) {
  return p.set.empty() ? p.mixer : fmt::format("{} {}", p.mixer, fmt::join(p.set, " "));
}

std::string accuracy_text(const PointSummary& p) {
  return fmt::format("{:.4f}{}", p.mean, std::isnan(p.deviation) ? "" : fmt::format(" +-{:.4f}", p.deviation));
}

template <typename T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

/// The line that a point stands on against the state: its mixer's over all widths, or, where its options vary as well,
/// its mixer's at its width.
std::string state_line(const SweepGrid& grid, const SweepPoint& p) {
  const auto differs = [&](auto member) {
    return std::ranges::any_of(
        grid.points, [&](const SweepPoint& other) { return other.mixer == p.mixer && other.*member != p.*member; });
  };
  if (!differs(&SweepPoint::set) || !differs(&SweepPoint::dim)) return p.mixer;
  return fmt::format("{}, width {}", p.mixer, p.dim);
}

/// The line that a point stands on against the width: its mixer's, with those settings that the mixer's other points do
/// not all have.
std::string width_line(const SweepGrid& grid, const SweepPoint& p) {
  std::string line = p.mixer;
  for (const std::string& setting : p.set)
    if (std::ranges::any_of(grid.points, [&](const SweepPoint& other) {
          return other.mixer == p.mixer && std::ranges::find(other.set, setting) == other.set.end();
        }))
      line += " " + setting;
  return line;
}

/// A line for each name; points in the order of x.
void add_point(Plot& plot, const std::string& name, const PlotPoint& point) {
  auto series = std::ranges::find(plot.series, name, &PlotSeries::name);
  if (series == plot.series.end()) series = plot.series.insert(series, PlotSeries{.name = name, .points = {}});
  const auto after = std::ranges::upper_bound(series->points, point.x, {}, &PlotPoint::x);
  series->points.insert(after, point);
}

}  // namespace

Json cell_result(const SweepPlan& plan, std::size_t cell, double rate, const Json& train, const Json& valid,
                 const Json& test) {
  Json json = cell_facts(plan, cell, rate);
  for (const char* key : {"parameters", "state_bytes", "accuracy", "accuracy_low", "accuracy_high", "n", "metric",
                          "chance", "ceiling", "task_digest"})
    json[key] = test.at(key);
  json["valid_accuracy"] = valid.at("accuracy");
  json["valid_n"] = valid.at("n");
  json["valid_loss_nats"] = valid.at("nats_per_token");
  json["steps"] = train.at("step");
  json["best_step"] = train.at("best_step");
  return json;
}

Json diverged_result(const SweepPlan& plan, std::size_t cell, double rate) {
  Json json = cell_facts(plan, cell, rate);
  json["outcome"] = "diverged";
  for (const char* key :
       {"parameters", "state_bytes", "accuracy", "accuracy_low", "accuracy_high", "n", "metric", "chance", "ceiling",
        "task_digest", "valid_accuracy", "valid_n", "valid_loss_nats", "steps", "best_step"})
    json[key] = Json();
  return json;
}

std::vector<Json> result_lines(const SweepPlan& plan, SweepResults& results) {
  std::vector<Json> lines;
  for (std::size_t i = 0; i < plan.grid.cells.size(); ++i) {
    const Json* result = results.find(i);
    if (result == nullptr) continue;
    lines.push_back(*result);
    const RateChoice choice = results.choice(plan.grid.cells[i].point);
    if (choice.decided) lines.back()["chosen"] = choice.rate == results.rate_of(i).rate;
  }
  return lines;
}

std::string tab_separated(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) {
    std::string header, row;
    for (const auto& [key, value] : line.items()) {
      if (key == "schema") continue;
      header += fmt::format("{}{}", header.empty() ? "" : "\t", key);
      row += fmt::format("{}{}", row.empty() ? "" : "\t", cell_text(value));
    }
    if (text.empty()) text = header + "\n";
    text += row + "\n";
  }
  return text;
}

void collect(const SweepPlan& plan, const SweepFolder& folder) {
  with_lock(
      folder.file("results.tsv"), [](double waited_s) { return waited_s < kCollectPatience_s; },
      [&] {
        SweepResults results(plan, folder);
        const std::vector<Json> lines = result_lines(plan, results);
        std::string json, costs = "cell\ttrain_s\tscore_s\tpeak_bytes\n";
        for (const Json& line : lines) {
          json += json_line(line);
          const std::string cell = line.at("cell").get<std::string>();
          const SweepCost cost = folder.cost(cell);
          costs += fmt::format("{}\t{:.3f}\t{:.3f}\t{}\n", cell, cost.train_s, cost.score_s, cost.peak_bytes);
        }
        write_file(folder.file("results.tsv"), tab_separated(lines));
        write_file(folder.file("results.jsonl"), json);
        write_file(folder.file("costs.tsv"), costs);
      });
}

std::vector<PointSummary> summarise(const SweepPlan& plan, SweepResults& results) {
  std::vector<PointSummary> points;
  for (std::size_t i = 0; i < plan.grid.cells.size(); ++i) {
    const Json* result = results.find(i);
    const RateChoice choice = results.choice(plan.grid.cells[i].point);
    if (result == nullptr || result->at("outcome") != "done" || !choice.rate || choice.rate != results.rate_of(i).rate)
      continue;
    if (points.empty() || points.back().point != plan.grid.cells[i].point)
      points.push_back({.point = plan.grid.cells[i].point,
                        .rate = *choice.rate,
                        .chance = result->at("chance").get<double>(),
                        .state_bytes = result->at("state_bytes").get<Index>(),
                        .parameters = result->at("parameters").get<Index>()});
    PointSummary& p = points.back();  // Welford: deviation holds the sum of squares meanwhile
    const double accuracy = result->at("accuracy").get<double>(), before = accuracy - p.mean;
    p.mean += before / static_cast<double>(++p.seeds);
    p.deviation += before * (accuracy - p.mean);
  }
  for (PointSummary& p : points)
    p.deviation = p.seeds > 1 ? std::sqrt(p.deviation / static_cast<double>(p.seeds - 1)) : kNone;
  return points;
}

std::string summary_text(const SweepPlan& plan, const std::vector<PointSummary>& points) {
  std::string text;
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    std::vector<Index> dims;
    std::vector<std::string> rows;
    std::map<std::pair<std::string, Index>, std::string> cells;
    double chance = 0;
    for (const PointSummary& s : points) {
      const SweepPoint& p = plan.grid.points[s.point];
      if (p.task != task) continue;
      const std::string row = fmt::format("{}, {} layers", mixer_text(p), p.layers);
      add_once(dims, p.dim), add_once(rows, row);
      cells[{row, p.dim}] = accuracy_text(s);
      chance = s.chance;
    }
    if (rows.empty()) continue;
    std::vector<std::string> header{"accuracy, width:"};
    for (const Index dim : dims) header.push_back(fmt::format("{}", dim));
    Table table(header);
    for (const std::string& row : rows) {
      std::vector<std::string> words{row};
      for (const Index dim : dims) words.push_back(cells.contains({row, dim}) ? cells.at({row, dim}) : "-");
      table.row(words);
    }
    text +=
        fmt::format("{}{}; chance {:.4g}\n", text.empty() ? "" : "\n", task_text(plan, task), chance) + table.text();
  }
  return text;
}

Json summary_json(const SweepPlan& plan, const PointSummary& s) {
  const SweepPoint& p = plan.grid.points[s.point];
  Json json = json_report("recall-sweep-point", 1);
  json["task"] = plan.tasks[p.task].task;
  json["task_parameters"] = values_text(recall_task_kind(plan.tasks[p.task].task), plan.tasks[p.task].values);
  json["mixer"] = p.mixer;
  json["options"] = fmt::format("{}", fmt::join(p.set, " "));
  json["layers"] = p.layers;
  json["dim"] = p.dim;
  json["parameters"] = s.parameters;
  json["state_bytes"] = s.state_bytes;
  json["lr"] = s.rate;
  json["seeds"] = s.seeds;
  json["accuracy_mean"] = s.mean;
  json["accuracy_deviation"] = std::isnan(s.deviation) ? Json() : Json(s.deviation);
  json["chance"] = s.chance;
  return json;
}

PlotSheet recall_plot(const SweepPlan& plan, const std::vector<PointSummary>& points) {
  std::vector<Index> widths, layers;
  for (const SweepPoint& p : plan.grid.points) add_once(widths, p.dim), add_once(layers, p.layers);
  PlotSheet sheet{.panels = {}, .columns = widths.size() > 1 ? 2 : 1};
  const PlotAxis state{"state (bytes)", AxisScale::log2}, width{"width", AxisScale::log2};
  const PlotAxis accuracy{"accuracy on the test split (mean over seeds)", AxisScale::linear, 0, 1};
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    Plot by_state, by_width;
    by_state.x = state, by_width.x = width;
    by_state.y = by_width.y = accuracy;
    by_state.title = by_width.title = task_text(plan, task);
    for (const PointSummary& s : points) {
      const SweepPoint& p = plan.grid.points[s.point];
      if (p.task != task) continue;
      const std::string suffix = layers.size() > 1 ? fmt::format(", {} layers", p.layers) : "";
      add_point(by_state, state_line(plan.grid, p) + suffix, {static_cast<double>(s.state_bytes), s.mean, s.deviation});
      add_point(by_width, width_line(plan.grid, p) + suffix, {static_cast<double>(p.dim), s.mean, s.deviation});
    }
    sheet.panels.push_back(std::move(by_state));
    if (widths.size() > 1) sheet.panels.push_back(std::move(by_width));
  }
  return sheet;
}

}  // namespace quipu
