#pragma once
#include "cli/plot.h"
#include "cli/sweep_folder.h"

namespace quipu {

/// The result of a cell, in the order of its columns, from what its processes said: `train --json`, and
/// `recall-bench run --json` on the validation and on the test split.
Json cell_result(const SweepPlan& plan, std::size_t cell, double rate, const Json& train, const Json& valid,
                 const Json& test);
/// The same of one whose training came to numbers that are not finite.
Json diverged_result(const SweepPlan& plan, std::size_t cell, double rate);

/// The lines of the results: those of all cells of the grid that are done, in its order, each with whether its rate was
/// chosen ("chosen": null where that is open).
std::vector<Json> result_lines(const SweepPlan& plan, SweepResults& results);
/// With a header; what is not there is NA.
std::string tab_separated(const std::vector<Json>& lines);

/// Writes results.tsv, results.jsonl and costs.tsv of a folder, of all cells that are done. Where several processes do
/// it at a time, the last one has them all.
void collect(const SweepPlan& plan, const SweepFolder& folder);

/// A point over its seeds, at the rate that was chosen.
struct PointSummary {
  std::size_t point = 0;
  double rate = 0;
  Index seeds = 0;
  double mean = 0, deviation = 0;  ///< of the accuracy; the deviation is NaN of one seed
  double chance = 0;
  Index state_bytes = 0, parameters = 0;
};

/// Of points that have a chosen rate and a result.
std::vector<PointSummary> summarise(const SweepPlan& plan, SweepResults& results);
/// A table for each task and number of layers: mixers by widths.
std::string summary_text(const SweepPlan& plan, const std::vector<PointSummary>& points);
Json summary_json(const SweepPlan& plan, const PointSummary& point);

/// Accuracy against the bytes of the state, and against the width: a row of two panels for each task.
PlotSheet recall_plot(const SweepPlan& plan, const std::vector<PointSummary>& points);

}  // namespace quipu
