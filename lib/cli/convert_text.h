#pragma once
#include <string>
#include <vector>

#include "cli/app.h"
#include "store/text_dataset.h"

namespace quipu {

/// What `convert text` was asked for; lives as long as the tool.
struct ConvertTextOptions {
  TextDatasetSpec spec;
  std::string valid, test, documents = "file";
  std::vector<std::string> splits, files;
};

/// Adds the command `text` to `convert`. `line`: the command line, for the provenance.
void add_convert_text(Command& tool, ConvertTextOptions& options, const std::string& line);

}  // namespace quipu
