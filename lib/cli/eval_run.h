#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"

namespace quipu {

/// What eval-ppl was asked for.
struct EvalRequest {
  std::string model, data = "-", split, protocol, prefix, documents = "file";
  std::optional<std::string> plot;
  bool by_position = false, per_token = false, per_line = false;
  std::vector<std::string> set;  ///< KEY=VALUE
  std::optional<double> max_ppl;
  Index batch_tokens = 4096;
};

/// Evaluates, and writes the results to standard output. Throws what is wrong with the request or its files.
Status run_eval(const EvalRequest& request, const Common& common);

}  // namespace quipu
