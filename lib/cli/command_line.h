#pragma once
#include <string>

namespace quipu {

/// The command as it would be typed into a shell, with the tool's plain name and quotes where they are needed: for the
/// provenance of files.
std::string command_line(const std::string& tool, int argc, char** argv);

}  // namespace quipu
