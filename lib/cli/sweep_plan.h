#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/recall_make.h"
#include "cli/sweep_grid.h"
#include "cli/train_command.h"
#include "train/agreement.h"

namespace quipu {

/// What `recall-bench sweep` was asked for; lives as long as the tool. Lists are as they were written.
struct RecallSweepOptions {
  std::string folder;
  std::string tasks;       ///< names between commas
  RecallMakeOptions make;  ///< its values are lists
  std::string mixers = "gsa", layers = "2", dims = "64", rates = "0.001", seeds = "1";
  std::vector<std::string> set;  ///< KEY=LIST
  TrainRequest train;            ///< what all cells have in common

  Index jobs = 1;
  std::string cell, cells;  ///< "3,4" and "2/8"; empty: all
  bool list_cells = false, collect = false;
  std::optional<double> time_limit_s;
  std::string plot;
};

/// A sweep with everything resolved.
struct SweepPlan {
  SweepGrid grid;
  std::vector<RecallFileSpec> tasks;  ///< of the grid's tasks, with their files
  TrainRequest train;
  std::vector<std::string> words;  ///< the options that all cells have in common, for the command line of train
  std::vector<std::size_t> mine;   ///< the cells of this call, ascending
  Common common;
};

/// What must agree where a cell of this name is in the folder already.
struct SweepSeal {
  std::string task;  ///< the command that makes it, and a line for every text that it read
  ModelConfig model;
  std::map<std::string, std::string> settings;  ///< of train
};

/// Throws UsageError for what cannot be, InputError for texts of a task that cannot be read.
SweepPlan plan_sweep(const RecallSweepOptions& options, const Command& command, const Common& common);

/// The training run of a cell, whose rate is given or found.
TrainRequest request_of(const SweepPlan& plan, const SweepCell& cell, double rate);
SweepSeal seal_of(const SweepPlan& plan, const SweepCell& cell, double rate);

std::string to_json(const SweepSeal& seal);
/// Throws InputError, opening with `where`, for a text that is no seal.
SweepSeal seal_from_json(const std::string& json, const std::string& where);
/// The first difference, if there is one.
std::optional<Difference> difference(const SweepSeal& here, const SweepSeal& there);

}  // namespace quipu
