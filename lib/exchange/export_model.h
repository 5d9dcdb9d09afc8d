#pragma once
#include <string>
#include <vector>

#include "models/language_model.h"
#include "text/published_tokenizer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Writes a model as other programs read it, into a folder that is made where it is not there: model.safetensors in
/// float32, and beside it config.json, or, for RWKV, none, under the names of its published checkpoints, and the files
/// of its tokenizer. Returns what the architecture is called there. Throws UsageError for a model that no such program
/// has, and InputError where the system refuses, or the folder has files that would be taken for parts of this model.
std::string export_model(const LanguageModel& model, const std::string& folder,
                         const std::vector<TokenizerFile>& tokenizer = {});

}  // namespace quipu::inline QUIPU_REAL_NS
