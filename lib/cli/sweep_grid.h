#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/real.h"

namespace quipu {

/// What a sweep varies. Lists are in the order in which they were written.
struct SweepAxes {
  std::vector<std::string> tasks;                                         ///< their names, for those of cells
  std::vector<std::string> mixers;                                        ///< patterns, as `train --mixer` takes them
  std::vector<std::pair<std::string, std::vector<std::string>>> options;  ///< of mixers, `--set`: key and values
  std::vector<Index> layers, dims;
  std::vector<double> rates;  ///< tried with the first seed
  std::vector<std::uint64_t> seeds;
};

/// A model on a task: what a figure of the sweep stands for, over all its rates and seeds.
struct SweepPoint {
  std::size_t task = 0;  ///< among the axes' tasks
  std::string mixer;
  std::vector<std::string> set;  ///< KEY=VALUE
  Index layers = 0, dim = 0;

  /// "3xgsa+attention_slots16": the mixer with its options.
  std::string model_name() const;
};

/// One training run.
struct SweepCell {
  std::size_t point = 0;
  std::optional<double> rate;  ///< none: the best of the point's rates, once the first seed has tried them
  std::uint64_t seed = 1;
  bool operator==(const SweepCell&) const = default;
};

/// All cells in their order: point by point, of each the rates with the first seed, then the further seeds.
struct SweepGrid {
  std::vector<std::string> tasks;
  std::vector<SweepPoint> points;
  std::vector<SweepCell> cells;

  /// "mqar_length64_pairs4-gsa_slots16-dim64-layers2-lr0.001-seed1": fit for a folder. `rate` of the cell, or the one
  /// that was found; none: "lrbest".
  std::string name(const SweepCell& cell, std::optional<double> rate) const;
};

/// Every mixer with every value of those options that it has, every number of layers, width, rate and seed, on every
/// task. `takes` says whether a mixer has an option. Throws UsageError for an empty list, for an option that no mixer
/// has, and for two cells of the same name.
SweepGrid make_grid(const SweepAxes& axes,
                    const std::function<bool(const std::string& mixer, const std::string& key)>& takes);

/// Share `index` (from 1) of `count`: the cells, ascending, of whole points, so that a share needs no other one. Points
/// are dealt by their size, `cost` of each, so that shares take about as long. Throws UsageError where index is not 1
/// .. count.
std::vector<std::size_t> share_of(const SweepGrid& grid, const std::vector<double>& cost, Index index, Index count);

/// Values between commas. Throws UsageError, opening with the option's name, for an empty one.
std::vector<std::string> parse_list(const std::string& option, const std::string& text);

/// What stands where in lists that go together: one value holds for all, otherwise all lists are as long. Returns
/// the number of rows. Throws UsageError, naming two lists of other lengths.
std::size_t rows_together(const std::vector<std::pair<std::string, std::size_t>>& lengths);

}  // namespace quipu
