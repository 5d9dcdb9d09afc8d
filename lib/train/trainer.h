#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "base/stopwatch.h"
#include "store/dataset_file.h"
#include "train/checkpoint_keeper.h"
#include "train/memory_estimate.h"
#include "train/model_checkpoint.h"
#include "train/train_progress.h"
#include "train/training_log.h"
#include "train/validation.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a run came to.
struct TrainSummary {
  bool stopped = false;  ///< early, with all saved
  bool solved = false;   ///< ended before its last step, as the validation loss was low enough
  Index step = 0;
  Index steps = 0;
  Index tokens = 0;
  double loss_nats = 0;  ///< per token, of the last line of the log
  std::optional<double> valid_nats;
  std::optional<double> best_valid_nats;
  Index best_step = 0;
  double best_bits_per_byte = 0;  ///< 0 where the dataset does not say how many bytes its text had
  double wall_s = 0;
  std::string last, best;  ///< files; `best` is empty without a validation split
};

/// Who watches a run. Each may be empty.
struct TrainObserver {
  std::function<void(const LogLine&)> on_line;
  /// After every step: how many are done, and the loss per token of the last.
  std::function<void(Index step, double loss_nats)> on_step;
};

/// Trains a language model on a dataset, with everything around it: the lock, resuming, evaluation, checkpoints, the
/// log. Notes for the user go to the log of base/log.h. A stop (base/stop.h) is polled everywhere.
class Trainer {
 public:
  /// Builds the model, takes the lock, and reads the checkpoint to go on from, if there is one; writes nothing else.
  /// Throws UsageError where a checkpoint is there that disagrees, InputError for files that are not what they
  /// should be.
  Trainer(const Dataset& data, TrainOptions options);

  const LanguageModel& model() const { return *model_; }
  LanguageModel& model() { return *model_; }
  const TrainOptions& options() const { return options_; }
  const TrainProgress& progress() const { return progress_; }
  /// Where the run goes on from, or "" for a fresh one.
  const std::string& resumed_from() const { return resumed_from_; }

  /// Nothing where a stop was asked for meanwhile.
  std::optional<MemoryEstimate> estimate() { return estimate_memory(*model_, *optimizer_, train_, options_); }
  /// Multiply-adds times two of one optimiser step, forward and backward.
  double step_flops() const;

  /// Trains to the end or to a stop. Throws NumericError where a number is not finite; the last checkpoint then stays.
  TrainSummary run(const TrainObserver& observer = {});

 private:
  /// Segments and their length for the rows of a scored task.
  void fit_to_rows();
  void start_afresh();
  void resume_from(const std::string& path, bool exactly);
  /// The first whole one of them.
  void resume_from_first(const std::vector<std::string>& candidates);
  /// Whether the data is read as it was. Throws UsageError for what must not differ.
  bool check_agreement(const CheckpointFile& file, const TrainProgress& saved, bool exactly) const;
  void note_environment(const TrainProgress& saved) const;

  void account(const StepResult& result);
  /// What step `step` reads from.
  const Batcher& batcher_at(Index step) const;
  bool is_due(Index every) const;
  bool evaluate();
  void write_line(TrainingLog& log, const TrainObserver& observer);
  void save();
  CheckpointFacts facts() const;
  bool must_stop() const;
  /// Whether the validation loss is as low as it needs to be.
  bool is_solved() const;
  bool is_finished() const { return progress_.step >= options_.schedule.steps || is_solved(); }
  bool finish_step(TrainingLog& log, const TrainObserver& observer);
  TrainSummary summary(bool stopped) const;

  const Dataset& data_;
  TrainOptions options_;
  const Split& train_;
  const Split* valid_ = nullptr;
  CheckpointKeeper files_;
  std::optional<LockFile> lock_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Batcher> batchers_;  ///< one for every number of segments that windows have
  ModelState carried_;
  TrainProgress progress_;
  Provenance history_;
  std::string resumed_from_;

  Index saved_step_ = -1;
  Stopwatch since_start_, since_save_;
  double save_took_s_ = 0;
  double training_s_ = 0;      // since the last line
  Index training_tokens_ = 0;  // since the last line
  double recent_step_s_ = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
