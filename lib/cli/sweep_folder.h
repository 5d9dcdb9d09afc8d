#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "cli/report.h"
#include "cli/sweep_plan.h"

namespace quipu {

/// What training and measuring a cell cost, over all calls that it took.
struct SweepCost {
  double train_s = 0, score_s = 0;
  Index peak_bytes = 0;
};

/// A rate for the further seeds of a point.
struct RateChoice {
  bool decided = false;
  std::optional<double> rate;  ///< none although decided: no rate gave finite numbers
};

/// The folder of a sweep:
///
///   tasks/NAME.h5            each task, made once
///   cells/NAME/cell.json     what a cell is: must agree where the cell is met again
///   cells/NAME/train.json    what train said at its end, and valid.json and test.json what run said: where one of them
///   is
///                            there, its work is done
///   cells/NAME/result.json   all that counts of them; where it is there, so is the cell done
///   cells/NAME/costs.tsv     a line for each process
///   results.tsv, .jsonl      the results of all cells of the grid
///
/// All files appear whole. Any number of processes may use one folder at a time.
class SweepFolder {
 public:
  explicit SweepFolder(std::string path) : path_(std::move(path)) {}

  /// Makes the folder, unless it is there. Throws InputError where it cannot.
  void make() const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string cell_file(const std::string& cell, const std::string& name) const;
  bool has(const std::string& cell, const std::string& name) const;

  /// Makes the folder of a cell, and says what it is; or finds that it is there, and the same. Throws UsageError naming
  /// what differs.
  void open_cell(const std::string& cell, const SweepSeal& seal) const;
  /// The second part of that alone: where the cell is there already.
  void require_seal(const std::string& cell, const SweepSeal& seal) const;

  /// A file of a cell; nothing where it is not there. Throws InputError for one that is no JSON.
  std::optional<Json> read(const std::string& cell, const std::string& name) const;
  void write(const std::string& cell, const std::string& name, const std::string& text) const;

  void add_cost(const std::string& cell, const std::string& stage, const ChildEnd& end) const;
  SweepCost cost(const std::string& cell) const;

  /// Makes the file of a task, unless it is there; waits for another process that is making it. Throws UsageError where
  /// the file is of another task, or a stop was asked for.
  void make_task(const RecallFileSpec& spec) const;

 private:
  std::string path_;
};

/// The results of cells, each read once it is there.
class SweepResults {
 public:
  SweepResults(const SweepPlan& plan, const SweepFolder& folder) : plan_(plan), folder_(folder) {}

  /// Of a cell, by its number in the grid. The rate of a further seed must be decided, else there is none.
  const Json* find(std::size_t cell);
  /// The rate that the first seed was best at: by accuracy on the validation split, then by its loss; never by the test
  /// split. A rate at which training came to numbers that are not finite is none.
  RateChoice choice(std::size_t point);
  /// The rate of a cell: its own, or the choice.
  RateChoice rate_of(std::size_t cell);

 private:
  const SweepPlan& plan_;
  const SweepFolder& folder_;
  std::map<std::size_t, Json> found_;
  std::map<std::size_t, RateChoice> choices_;
};

/// Runs `work` while this process holds the lock of `path`, for which it waits as long as `wait` allows (it is told
/// how many seconds have passed). Throws the lock's InputError where it does not.
void with_lock(const std::string& path, const std::function<bool(double)>& wait, const std::function<void()>& work);

}  // namespace quipu
