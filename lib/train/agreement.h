#pragma once
#include <map>
#include <string>
#include <vector>

#include "models/config.h"

namespace quipu {

/// An option that two runs have with different values, as it stands on the command line.
struct Difference {
  std::string option;  ///< "--dim", "--set gsa.slots", "data"
  std::string here, there;
};

/// Where two complete configurations differ.
std::vector<Difference> differences(const ModelConfig& here, const ModelConfig& there);
/// Where two sets of settings differ; one that is missing counts as "none".
std::vector<Difference> differences(const std::map<std::string, std::string>& here,
                                    const std::map<std::string, std::string>& there);

}  // namespace quipu
