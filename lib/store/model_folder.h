#pragma once
#include <string>
#include <vector>

#include "store/source_metadata.h"

namespace quipu {

/// The file of tensors in a folder that holds one model: its index or single file, by the usual names. InputError where
/// there is none.
std::string find_model_file(const std::string& folder);

/// All names of files that belong to a model by standing in its folder.
std::vector<std::string> model_folder_names();

/// Adds what stands beside a model's tensors: the text of config.json, and the paths of generation_config.json and of
/// tokenizer files. Throws InputError where config.json is no JSON, is nested deeply or is longer than 4 MiB.
void add_companions(const std::string& folder, SourceMetadata& metadata);

}  // namespace quipu
