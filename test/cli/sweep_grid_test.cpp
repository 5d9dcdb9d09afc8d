#include "cli/sweep_grid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

using namespace quipu;

namespace {

SweepAxes sample() {
  return {.tasks = {"mqar_length8", "mqar_length16"},
          .mixers = {"gsa", "3xgsa,attention"},
          .options = {{"slots", {"4", "8"}}, {"attention.window", {"3"}}},
          .layers = {4},
          .dims = {16, 32, 48},
          .rates = {0.01, 0.003},
          .seeds = {5, 6, 7}};
}

bool takes(const std::string& mixer, const std::string& key) {
  return key == "slots" || mixer.find("attention") != std::string::npos;
}

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sweep grid: every mixer with those options that it has, each rate with the first seed alone") {
  const SweepGrid grid = make_grid(sample(), takes);
  REQUIRE(grid.points.size() == 2 * (2 + 2) * 3);
  REQUIRE(grid.cells.size() == grid.points.size() * (2 + 2));
  CHECK(grid.points[0].set == std::vector<std::string>{"slots=4"});
  CHECK(grid.points[6].set == std::vector<std::string>{"slots=4", "attention.window=3"});
  CHECK(grid.points[6].model_name() == "3xgsa+attention_slots4_attention.window3");
  CHECK(grid.points[12].task == 1);
  CHECK(grid.cells[0] == SweepCell{0, 0.01, 5});
  CHECK(grid.cells[1] == SweepCell{0, 0.003, 5});
  CHECK(grid.cells[2] == SweepCell{0, std::nullopt, 6});
  CHECK(grid.cells[4] == SweepCell{1, 0.01, 5});
  CHECK(grid.name(grid.cells[4], 0.01) == "mqar_length8-gsa_slots4-dim32-layers4-lr0.01-seed5");
  CHECK(grid.name(grid.cells[2], std::nullopt).ends_with("-lrbest-seed6"));
}

TEST_CASE("sweep grid: of one rate nothing is left to choose") {
  SweepAxes axes = sample();
  axes.rates = {0.02};
  const SweepGrid grid = make_grid(axes, takes);
  REQUIRE(grid.cells.size() == grid.points.size() * 3);
  CHECK(std::ranges::all_of(grid.cells, [](const SweepCell& cell) { return cell.rate == 0.02; }));
}

TEST_CASE("sweep grid: what cannot be is refused") {
  SweepAxes axes = sample();
  axes.options.emplace_back("decay", std::vector<std::string>{"1"});
  const auto never_decay = [](const std::string&, const std::string& key) { return key != "decay"; };
  CHECK(message_of([&] { make_grid(axes, never_decay); }).find("--set decay: none of the mixers") == 0);
  axes = sample();
  axes.seeds = {5, 6, 5};
  CHECK(message_of([&] { make_grid(axes, takes); }).find("-seed5: two cells of the sweep") != std::string::npos);
  axes = sample();
  axes.dims = {16, 16};
  CHECK(message_of([&] { make_grid(axes, takes); }).find("two cells of the sweep have this name") != std::string::npos);
  axes.dims = {};
  CHECK(message_of([&] { make_grid(axes, takes); }).find("--dim: is an empty list") == 0);
  CHECK(parse_list("--dim", "1,2,30") == std::vector<std::string>{"1", "2", "30"});
  CHECK(message_of([] { parse_list("--dim", "1,,2"); }).find("--dim 1,,2: has an empty value") == 0);
  CHECK(message_of([] { parse_list("--dim", ""); }).find("empty value") != std::string::npos);
}

TEST_CASE("sweep grid: shares have whole points, all of them once, and take about as long") {
  const SweepGrid grid = make_grid(sample(), takes);
  std::vector<double> cost;
  for (const SweepPoint& p : grid.points) cost.push_back(static_cast<double>(p.dim * (p.task + 1)));
  for (const Index count : {1, 2, 5, 24, 30}) {
    CAPTURE(count);
    std::set<std::size_t> seen;
    std::vector<double> sums;
    for (Index share = 1; share <= count; ++share) {
      const std::vector<std::size_t> cells = share_of(grid, cost, share, count);
      CHECK(std::ranges::is_sorted(cells));
      double sum = 0;
      for (const std::size_t cell : cells) {
        CHECK(seen.insert(cell).second);
        sum += cost[grid.cells[cell].point];
      }
      for (const std::size_t cell : cells)
        CHECK(std::ranges::count_if(
                  cells, [&](std::size_t other) { return grid.cells[other].point == grid.cells[cell].point; }) == 4);
      sums.push_back(sum);
    }
    CHECK(seen.size() == grid.cells.size());
    if (count <= 5) CHECK(std::ranges::max(sums) < 1.5 * std::ranges::min(sums));
  }
  CHECK(message_of([&] { share_of(grid, cost, 0, 4); }).find("--cells 0/4: is no share") == 0);
  CHECK(message_of([&] { share_of(grid, cost, 5, 4); }).find("the first of 4 is 1/4") != std::string::npos);
}

TEST_CASE("sweep grid: lists of a task go together, one by one") {
  CHECK(rows_together({{"task", 1}, {"length", 1}}) == 1);
  CHECK(rows_together({{"task", 1}, {"length", 3}, {"pairs", 3}, {"vocab", 1}}) == 3);
  CHECK(message_of([] {
          rows_together({{"length", 2}, {"task", 1}, {"pairs", 3}});
        }).find("--length has 2 values and --pairs has 3") == 0);
}
