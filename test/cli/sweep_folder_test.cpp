#include "cli/sweep_folder.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "cli/sweep_report.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;
using quipu_test::write_whole;

namespace {

/// Two widths, three rates with the first of two seeds.
SweepPlan sample(const std::string& folder) {
  SweepPlan plan;
  plan.grid = make_grid({.tasks = {"copy"},
                         .mixers = {"gsa"},
                         .options = {},
                         .layers = {2},
                         .dims = {16, 32},
                         .rates = {0.1, 0.01, 0.001},
                         .seeds = {4, 9}},
                        [](const std::string&, const std::string&) { return false; });
  RecallFileSpec task;
  task.task = "copy";
  task.output = folder + "/tasks/copy.h5";
  plan.tasks = {task};
  for (std::size_t i = 0; i < plan.grid.cells.size(); ++i) plan.mine.push_back(i);
  return plan;
}

Json said(double accuracy, double loss) {
  return Json::parse(R"({"parameters": 7, "state_bytes": 512, "accuracy_low": 0, "accuracy_high": 1, "n": 50, "metric":
      "tokens", "chance": 0.25, "ceiling": 1, "task_digest": "ab", "step": 30, "best_step": 20, "accuracy": )" +
                     fmt::format("{}, \"nats_per_token\": {}}}", accuracy, loss));
}

class Sweep {
 public:
  explicit Sweep(const TemporaryFolder& folder) : plan(sample(folder.path())), files(folder.path()) {}

  void done(std::size_t cell, double rate, double valid, double loss, double test) {
    const std::string name = plan.grid.name(plan.grid.cells[cell], rate);
    files.open_cell(name, seal_of(plan, plan.grid.cells[cell], rate));
    files.write(name, "result.json",
                json_line(cell_result(plan, cell, rate, said(0, 0), said(valid, loss), said(test, 9))));
  }
  void diverged(std::size_t cell, double rate) {
    const std::string name = plan.grid.name(plan.grid.cells[cell], rate);
    files.open_cell(name, seal_of(plan, plan.grid.cells[cell], rate));
    files.write(name, "result.json", json_line(diverged_result(plan, cell, rate)));
  }

  SweepPlan plan;
  SweepFolder files;
};

}  // namespace

TEST_CASE("sweep: the rate is chosen on validation, once all of them are done, and never by the test split") {
  const TemporaryFolder folder;
  Sweep sweep(folder);
  sweep.done(0, 0.1, 0.5, 1.5, 0.99);
  sweep.done(1, 0.01, 0.7, 1.2, 0.60);
  CHECK_FALSE(SweepResults(sweep.plan, sweep.files).choice(0).decided);
  sweep.done(2, 0.001, 0.7, 1.1, 0.50);
  SweepResults results(sweep.plan, sweep.files);
  CHECK(results.choice(0).decided);
  CHECK(results.choice(0).rate == 0.001);  // as accurate as 0.01, and surer
  CHECK(results.rate_of(3).rate == 0.001);
  CHECK(results.find(3) == nullptr);
  CHECK_FALSE(results.choice(1).decided);

  for (const std::size_t cell : {4, 5, 6}) sweep.diverged(cell, *sweep.plan.grid.cells[cell].rate);
  CHECK(results.choice(1).decided);
  CHECK_FALSE(results.choice(1).rate);
}

TEST_CASE("sweep: results are those that are done, in the order of the grid, and the same whoever collects them") {
  const TemporaryFolder folder;
  Sweep sweep(folder);
  sweep.done(3, 0.01, 0.8, 1, 0.4);  // before its rate is known to be the best
  sweep.diverged(0, 0.1);
  sweep.done(2, 0.001, 0.2, 1, 0.3);
  collect(sweep.plan, sweep.files);
  std::string table = read_whole(folder / "results.tsv");
  CHECK(std::ranges::count(table, '\n') == 3);
  CHECK(table.find("lr0.1-seed4\tdiverged\tNA\tcopy") != std::string::npos);
  sweep.done(1, 0.01, 0.7, 1, 0.6);
  collect(sweep.plan, sweep.files);
  table = read_whole(folder / "results.tsv");
  CHECK(std::ranges::count(table, '\n') == 5);
  CHECK(table.find("lr0.1-seed4\tdiverged\tfalse") < table.find("lr0.01-seed4\tdone\ttrue"));
  CHECK(table.find("lr0.001-seed4\tdone\tfalse") < table.find("lr0.01-seed9\tdone\ttrue"));

  SweepResults results(sweep.plan, sweep.files);
  const std::vector<PointSummary> points = summarise(sweep.plan, results);
  REQUIRE(points.size() == 1);
  CHECK(points[0].seeds == 2);
  CHECK(points[0].mean == doctest::Approx(0.5));
  CHECK(points[0].deviation == doctest::Approx(0.1414213562));
  CHECK(summary_text(sweep.plan, points).find("\ngsa, 2 layers     0.5000 +-0.1414\n") != std::string::npos);
  const PlotSheet sheet = recall_plot(sweep.plan, points);
  REQUIRE(sheet.panels.size() == 2);
  CHECK(sheet.panels[0].series[0].points[0].x == 512);
  CHECK(sheet.panels[1].series[0].points[0].x == 16);
  CHECK(sheet.panels[1].series[0].points[0].y == doctest::Approx(0.5));
}

TEST_CASE("sweep: a cell that is there with other options is refused") {
  const TemporaryFolder folder;
  Sweep sweep(folder);
  sweep.done(0, 0.1, 0.5, 1.5, 0.5);
  const auto message = [&](const std::function<void(SweepPlan&)>& change) -> std::string {
    SweepPlan plan = sample(folder.path());
    change(plan);
    const SweepSeal seal = seal_of(plan, plan.grid.cells[0], 0.1);
    CHECK_FALSE(difference(seal, seal_from_json(to_json(seal), "here")));
    try {
      sweep.files.require_seal(plan.grid.name(plan.grid.cells[0], 0.1), seal);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message([](SweepPlan&) {}).empty());
  CHECK(message([](SweepPlan& plan) { plan.train.train.batch = 5; }).find("--batch 16, this sweep has 5;") !=
        std::string::npos);
  CHECK(message([](SweepPlan& plan) { plan.train.heads = 2; }).find("--heads") != std::string::npos);
  CHECK(message([](SweepPlan& plan) {
          plan.train.train.stop_below_nats = 0.1;
        }).find("--stop-below none, this sweep has 0.1") != std::string::npos);
  CHECK(message([](SweepPlan& plan) { plan.tasks[0].seed = 3; }).find("the task recall-bench make copy") !=
        std::string::npos);
  write_whole(sweep.files.cell_file(sweep.plan.grid.name(sweep.plan.grid.cells[0], 0.1), "cell.json"), "{}");
  CHECK_THROWS_WITH_AS(message([](SweepPlan&) {}), doctest::Contains("cell.json: does not say what its cell is"),
                       InputError);
}

TEST_CASE("sweep: what processes cost is summed, a line that was cut short left out") {
  const TemporaryFolder folder;
  Sweep sweep(folder);
  sweep.diverged(0, 0.1);
  const std::string name = sweep.plan.grid.name(sweep.plan.grid.cells[0], 0.1);
  sweep.files.add_cost(name, "train", {75, 1.5, 1000});
  sweep.files.add_cost(name, "train", {0, 2.25, 3000});
  sweep.files.add_cost(name, "test", {0, 0.5, 2000});
  const std::string path = sweep.files.cell_file(name, "costs.tsv");
  write_whole(path, read_whole(path) + "train\t9");
  const SweepCost cost = sweep.files.cost(name);
  CHECK(cost.train_s == doctest::Approx(3.75));
  CHECK(cost.score_s == doctest::Approx(0.5));
  CHECK(cost.peak_bytes == 3000);
}

TEST_CASE("sweep: a task is made once, and another one in its place refused") {
  const TemporaryFolder folder;
  const SweepFolder files(folder.path());
  RecallFileSpec spec;
  spec.task = "copy", spec.values = {{"count", 3}};
  spec.train = 9, spec.valid = 2, spec.test = 3;
  spec.output = folder / "tasks/copy.h5";
  files.make_task(spec);
  const auto made = std::filesystem::last_write_time(spec.output);
  files.make_task(spec);
  CHECK(std::filesystem::last_write_time(spec.output) == made);
  spec.train = 10;
  CHECK_THROWS_WITH_AS(files.make_task(spec), doctest::Contains("--train 9"), UsageError);
}
