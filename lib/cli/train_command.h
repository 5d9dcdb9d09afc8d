#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "train/train_options.h"

namespace quipu {

/// The command line of `train`.
struct TrainRequest {
  std::string data;
  TrainOptions train;

  std::string preset;
  std::optional<std::string> mixer, channel_mixer, norm, norm_place, positions, head, memory_mask, memory_state;
  std::optional<Index> layers, dim, heads, memory_tokens;
  std::vector<std::string> set;  ///< KEY=VALUE

  std::string optimizer = "adamw";
  std::string schedule = "cosine";
  std::optional<Index> warmup;
  std::optional<double> time_limit_s;
  std::string precision = "f32";
  bool dry_run = false;
  bool list_mixers = false;
  std::string describe_mixer;
};

/// Declares the options of `train`.
void add_train_options(Command& tool, TrainRequest& request);

/// Declares those options that say how a model is trained, and neither which one nor from what: for a tool that trains
/// several on equal terms.
void add_training_options(Command& tool, TrainRequest& request);
/// Declares those that say what a model is like beside its mixers; --preset and --set among them.
void add_shape_options(const Section& section, TrainRequest& request);
/// Declares --precision.
void add_precision_option(const Section& section, TrainRequest& request);
/// Those of add_training_options that were given, as words for the command line of `train`.
std::vector<std::string> training_words(const Command& tool);

/// What the options come to, once they are read: presets applied, the model of --init taken over where the command
/// line does not say otherwise, warm-up chosen. Throws UsageError for options that cannot go together.
TrainOptions resolve(const TrainRequest& request, const Common& common);

/// The model that the command line asks for, without a vocabulary.
ModelConfig resolve_model(const TrainRequest& request);

}  // namespace quipu
