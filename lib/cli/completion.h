#pragma once
#include <string>

#include "cli/command_text.h"

namespace quipu {

/// A bash script that completes the tool's subcommands, options, choices and file names.
std::string bash_completion(const CommandText& tool);

}  // namespace quipu
