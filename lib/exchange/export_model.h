#pragma once
#include <string>

#include "models/language_model.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Writes a model as other programs read it, into a folder that is made where it is not there: model.safetensors in
/// float32, and beside it config.json, or, for RWKV, none, under the names of its published checkpoints. Returns what
/// the architecture is called there. Throws UsageError for a model that no such program has, and InputError where the
/// system refuses.
std::string export_model(const LanguageModel& model, const std::string& folder);

}  // namespace quipu::inline QUIPU_REAL_NS
