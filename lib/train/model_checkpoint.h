#pragma once
#include <memory>
#include <string>

#include "models/language_model.h"
#include "store/model_file.h"
#include "train/optimizer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A model and its checkpoint. Files hold float32 whatever Real is, or matrices in formats of fewer bits.

/// What a checkpoint's model needs beside its numbers. `gradients`: for training.
/// Builds the model that the file describes and reads its parameters, nothing else: no optimiser arrays. Matrices keep
/// the number formats that they have in the file, and are read into place as they are.
/// With gradients all are expanded to float32. Throws InputError where the file's arrays are not those of its
/// configuration.
/// `settings`: options of mixers, KEY=VALUE, that differ from the file's; UsageError where they make no model, and
/// InputError where they make another one than the file has arrays for.
std::unique_ptr<LanguageModel> load_model(const CheckpointFile& file, bool gradients = false,
                                          const std::vector<std::string>& settings = {});
/// The same with all matrices in `format`, rounded as they are read (see `matrices_in`); those in another one are
/// expanded first, one at a time. Norms, biases, decays and the embedding table stay float32, and so does a head that
/// is tied to the table.
std::unique_ptr<LanguageModel> load_model_as(const CheckpointFile& file, NumberFormat format);
std::unique_ptr<LanguageModel> load_model(const std::string& path, bool gradients = false);

/// Reads the parameters and buffers of a file into a model. Names and shapes must be exactly the model's; throws
/// InputError naming the first that is missing, too many, or of another shape, with both shapes. Where the formats of a
/// matrix differ, it is expanded, or rounded to the model's.
void read_parameters(const CheckpointFile& file, Parameters& parameters);

/// The groups of an optimiser over a model's flat arrays: one for each run of parameters that are treated alike.
std::vector<ParameterGroup> optimizer_groups(const Parameters& parameters);

/// Reads what the optimiser remembers, array by array of the model. Throws InputError where the file holds none, or
/// that of another optimiser.
void read_optimizer(const CheckpointFile& file, const Parameters& parameters, Optimizer& optimizer);

/// Reads a carried state ([B,..] leaves) into `state`, which has the right shapes; integers come from the progress.
void read_carried_state(const CheckpointFile& file, ModelState& state);

/// Saves a model, and, where they are not null, what the optimiser remembers and a carried state. `facts` has
/// everything but the optimiser's counters. Copies no array where Real is float.
void save_model(const std::string& path, CheckpointFacts facts, Parameters& parameters, Optimizer* optimizer,
                const ModelState* carried);

/// The digest that binds a state to these parameters: that of the file they would be saved to.
std::string digest_of(Parameters& parameters);

}  // namespace quipu::inline QUIPU_REAL_NS
