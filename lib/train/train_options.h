#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "tensor/linear_products.h"
#include "train/bptt.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace quipu {

/// The length of a segment of text, where none is asked for.
inline constexpr Index kUsualLength = 256;

/// What a training run is asked to do. Counts of 0 mean "choose".
struct TrainOptions {
  std::string output = "model.h5";
  ModelConfig model;  ///< all but the vocabulary, which is the dataset's

  Index batch = 16;
  Index length = 0;    ///< tokens of a segment; 0: 256, or a whole row of a scored task
  Index segments = 1;  ///< of a window; those of a scored task follow from its rows
  /// The segments of a window in stages of equally many steps; empty: `segments` throughout.
  std::vector<Index> curriculum;
  GradientReach reach;  ///< `recompute` follows from checkpoint_activations
  Index accumulate = 1;
  bool carry_state = false;
  bool checkpoint_activations = false;
  Precision precision = Precision::f32;  ///< of the inputs of linear layers' products

  OptimizerOptions optimizer;
  ScheduleOptions schedule{.steps = 1000};
  double clip = 1;
  double dropout = 0;
  double layer_dropout = 0;
  double label_smoothing = 0;

  std::string init;  ///< a checkpoint whose weights to start from
  std::uint64_t seed = 1;

  Index eval_every = 0;                   ///< 0: ten times in all
  Index eval_tokens = 256 * 1024;         ///< 0: the whole split
  std::optional<double> stop_below_nats;  ///< a validation loss below this ends the run as finished
  Index save_every = 0;                   ///< 0: at every evaluation, and every ten minutes
  Index keep = 0;                         ///< periodic checkpoints to keep beside the last
  std::string log;                        ///< JSON lines; empty: none
  Index log_every = 0;                    ///< 0: a hundred times in all
  std::string resume = "auto";            ///< auto, never, or a checkpoint

  std::string command;  ///< for the provenance of checkpoints

  /// Segments of the windows that step `step` reads.
  Index segments_at(Index step) const;
};

/// Fills in what was left to choose; throws UsageError for what cannot be.
void complete(TrainOptions& options);

/// What must agree for a run to go on exactly, by option. The number of steps is not among them: a run may be made
/// longer, and says so.
std::map<std::string, std::string> settings_of(const TrainOptions& options, const std::string& data_digest);

}  // namespace quipu
