#pragma once
#include <string>

namespace quipu {

/// The path of the program gnuplot in PATH. Throws InputError, naming the package that has it.
std::string find_gnuplot();

/// What gnuplot writes to its standard output, given `script` on its standard input and none of the user's settings.
/// Throws InputError with its first complaint where it fails.
std::string run_gnuplot(const std::string& program, const std::string& script);

}  // namespace quipu
