#pragma once
#include <string>
#include <vector>

#include "train/text_generator.h"

namespace quipu {

/// What a run of `generate` came to.
struct Generation {
  TextOutcome prompt, made;
  const Generator& generator;
  std::vector<std::string> states;  ///< files that were written
};

/// Says how it went on standard error. With `text`, which is what was made, an object on standard output, too.
void report_generation(const Generation& generation, const std::string* text);

}  // namespace quipu
