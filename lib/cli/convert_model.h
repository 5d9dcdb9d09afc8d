#pragma once
#include <optional>
#include <string>

#include "cli/app.h"

namespace quipu {

/// What `convert model` was asked for; lives as long as the tool.
struct ConvertModelOptions {
  std::string input, output, format = "quipu", dtype, tokenizer;
  std::optional<double> groupnorm_eps;
  bool skip_unknown = false;
};

/// Adds the command `model` to `convert`. `line`: the command line, for the provenance.
void add_convert_model(Command& tool, ConvertModelOptions& options, const std::string& line);

}  // namespace quipu
