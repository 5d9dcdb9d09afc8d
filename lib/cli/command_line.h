#pragma once
#include <string>

namespace quipu {

/// The command as it could be typed again: the program's name without its folder, and its arguments, quoted for a
/// shell where they need it. For the provenance of files.
std::string command_line(int argc, const char* const* argv);

}  // namespace quipu
