#pragma once
#include <string>
#include <utility>
#include <vector>

namespace quipu {

/// What this binary is made of and runs on, for --version and --verbose: names with their texts, in order, such as
/// {"BLAS", "OpenBLAS 0.3.21, SkylakeX kernels, OpenMP build"}.
struct BuildInfo {
  std::string version;
  std::vector<std::pair<std::string, std::string>> parts;
};

BuildInfo build_info();

/// The same on one line: "quipu 0.1.0; BLAS ...; HDF5 ...".
std::string build_line(const BuildInfo& info);

/// "train (quipu) 0.1.0" and a line for each part, and the threads that a run without --threads takes.
std::string version_text(const std::string& tool, const BuildInfo& info);

}  // namespace quipu
