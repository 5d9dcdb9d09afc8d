#include "cli/recall_sweep.h"

#include <filesystem>

#include "base/log.h"
#include "base/stop.h"
#include "cli/plot.h"
#include "cli/sweep_report.h"
#include "cli/sweep_run.h"

namespace quipu {
namespace {

constexpr const char* kSweepHelp =
    R"(Trains and measures every mixer with every option, number of layers, width and seed on every task. Each combination is
a cell, trained and scored by processes of its own, in a folder of its own.

Options that say LIST take values between commas. Those of the grid make all combinations. Lists of task parameters go
together, one by one: --length 64,256 --pairs 4,16 are two tasks.

Where --lr lists several rates, the first seed tries all of them, and the further seeds are trained at the one that was
best on the validation split; the test split has no say in it. A rate that comes to numbers that are not finite is out.

Results are in FOLDER: results.tsv and results.jsonl have a line for each cell of the grid that is done, in its order, the
same to the last byte whenever and in whatever order cells ran; costs.tsv says what they took. cells/NAME has a cell's
model.best.h5, logs and reports. A table of accuracies, mean and standard deviation over the seeds at the chosen rate, is
printed at the end.

SIGTERM, SIGINT, SIGUSR1 and --time-limit stop a sweep: what is being trained saves itself, the status is 75, and the same
command goes on from there. What is done is never done again. A cell that fails is reported, the others go on, and the
status is 1 at the end; the next call tries it again. A cell that is in the folder with other options is refused.

Several processes may work on one folder. --cells 2/8 is the second of eight shares, for a job array; a share has all
rates and seeds of what it measures. --cell is the finest cut: a further seed whose rate is not decided yet is then left
for a later call, and the status is 75.)";

std::string state_of(const SweepPlan& plan, const SweepFolder& folder, SweepResults& results, std::size_t cell) {
  if (const Json* result = results.find(cell)) return result->at("outcome").get<std::string>();
  const RateChoice rate = results.rate_of(cell);
  if (!rate.decided) return "waits for its rate";
  if (!rate.rate) return "has no rate";
  return folder.has(plan.grid.name(plan.grid.cells[cell], rate.rate), "cell.json") ? "begun" : "open";
}

void list_cells(const SweepPlan& plan, const SweepFolder& folder) {
  SweepResults results(plan, folder);
  Table table({"cell", "state", "name"});
  for (const std::size_t cell : plan.mine) {
    const std::string name = plan.grid.name(plan.grid.cells[cell], results.rate_of(cell).rate);
    const std::string state = state_of(plan, folder, results, cell);
    if (!plan.common.json) {
      table.row({fmt::format("{}", cell + 1), state, name});
      continue;
    }
    Json json = json_report("recall-sweep-cell", 1);
    json["cell"] = cell + 1;
    json["state"] = state;
    json["name"] = name;
    print_json(json);
  }
  if (!plan.common.json) print_table(table);
}

void report(const SweepPlan& plan, const SweepFolder& folder) {
  SweepResults results(plan, folder);
  const std::vector<PointSummary> points = summarise(plan, results);
  if (!plan.common.json) return print_text(summary_text(plan, points));
  for (const PointSummary& point : points) print_json(summary_json(plan, point));
}

void note_end(const SweepPlan& plan, const SweepSummary& s) {
  const auto all = static_cast<Index>(plan.mine.size());
  if (s.stopped)
    log_note("stopped by {} with {} of {} cells done and all saved; the same command goes on",
             stop_reason().empty() ? std::string("the time limit of a cell") : stop_reason(), s.done, all);
  else if (s.failed + s.diverged + s.waiting > 0)
    log_note(
        "{} of {} cells done; {} failed, {} came to numbers that are not finite, {} wait for a rate or for another "
        "process; the same command goes on",
        s.done, all, s.failed, s.diverged, s.waiting);
}

Status run(const RecallSweepOptions& o, const Command& command, const Common& common) {
  const SweepPlan plan = plan_sweep(o, command, common);
  const SweepFolder folder(o.folder);
  if (o.list_cells) return list_cells(plan, folder), Status::kDone;
  if (o.collect && !std::filesystem::exists(folder.file("cells")))
    throw InputError("{}: has no cells to collect; run the sweep first", o.folder);
  if (o.time_limit_s) set_time_limit(*o.time_limit_s);
  std::optional<PlotFile> plot;
  if (!o.plot.empty()) plot.emplace(o.plot);
  SweepSummary summary;
  if (!o.collect) {
    folder.make();
    summary = run_sweep(plan, folder, o.jobs, [&] { collect(plan, folder); });
    note_end(plan, summary);
  }
  collect(plan, folder);
  report(plan, folder);
  SweepResults results(plan, folder);
  const std::vector<PointSummary> points = summarise(plan, results);
  if (plot && !points.empty()) plot->write(recall_plot(plan, points));
  if (plot && points.empty()) log_warning("--plot {}: is not drawn, as no point of the grid is measured yet", o.plot);
  return summary.status();
}

void add_grid_options(const Command& command, RecallSweepOptions& o) {
  const Section grid = command.section("Grid");
  add_text(grid, "--mixer", o.mixers, "LIST",
           "token mixers; the parts of a hybrid are joined by +, as in 3xgsa+attention");
  add_texts(
      grid, "--set", o.set, "KEY=LIST",
      "an option of mixers, as slots=16,64, or gsa.slots=16,64 of one of them; the mixers that have it take every "
      "value, the others none. Also the heads of one, as gsa.heads=1,4");
  add_text(grid, "--layers", o.layers, "LIST", "layers");
  add_text(grid, "--dim", o.dims, "LIST", "widths");
  add_text(grid, "--lr", o.rates, "LIST", "learning rates, tried with the first seed");
  add_text(grid, "--seeds", o.seeds, "LIST", "seeds of the models; --seed is that of the tasks");
}

void add_call_options(const Command& command, RecallSweepOptions& o) {
  const Section call = command.section("Call");
  add_count(call, "--jobs", o.jobs, 1, 4096,
            "cells at a time; they share the --threads, and small models are fastest with one each");
  const auto share = &add_text(call, "--cells", o.cells, "I/N", "only share I (from 1) of N, for a job array");
  const auto single = &add_text(call, "--cell", o.cell, "LIST", "only these cells, by their number in --list-cells");
  exclude(*share, *single);
  add_flag(call, "--list-cells", o.list_cells, "list the cells with their state, and stop");
  add_flag(call, "--collect", o.collect,
           "run nothing: write results.tsv and results.jsonl of what is done, and the table");
  add_duration(call, "--time-limit", o.time_limit_s, "stop with all saved after this time, such as 1h30m");
  add_text(call, "--plot", o.plot, "FILE.svg|png",
           "draw accuracy against the bytes of the state and against the width, a line for each mixer");
}

}  // namespace

void add_recall_sweep(Command& tool, RecallSweepOptions& o) {
  Command& sweep = tool.command("sweep", "make tasks, train and measure over a grid of models", kSweepHelp);
  const Section main = sweep.section();
  add_argument(main, "FOLDER", o.folder, true, "where the sweep is kept");
  required(add_text(main, "--task", o.tasks, "LIST", "tasks, of those that list shows"));
  add_grid_options(sweep, o);
  add_call_options(sweep, o);
  add_task_options(sweep, main, o.make);
  add_training_options(sweep, o.train);
  sweep.runs([&](const Common& common) { return run(o, sweep, common); });
}

}  // namespace quipu
