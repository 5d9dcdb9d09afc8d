#pragma once
#include <string>

#include "cli/profile_command.h"

namespace quipu {

/// Measures what `request` asks for, cell by cell, each in a process of its own, and reports it; or, where it holds a
/// cell, is that process. A stop ends the cell at hand, and what was measured before it is reported.
Status run_profile(const ProfileRequest& request, const Common& common, const std::string& command);

}  // namespace quipu
