#include "cli/build_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/threads.h"
#include "store/hdf5.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/onednn.h"

namespace quipu {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

}  // namespace

BuildInfo build_info() {
  BuildInfo info;
  info.version = QUIPU_VERSION;
  info.parts = {{"BLAS", fmt::format("{}, {} kernels", blas::version(), blas::kernel_name())},
                {"oneDNN", onednn::is_built_in() ? onednn::version() : "none"},
                {"SIMD", fmt::format("{} (Highway)", kernels::simd_target())},
                {"HDF5", hdf5_versions()},
                {"MPI", "none"},
                {"compiler", kCompiler}};
  const std::string advice = blas::narrow_kernel_advice();
  if (!advice.empty()) info.parts.insert(info.parts.begin() + 1, {"BLAS advice", advice});
  return info;
}

std::string version_text(const std::string& tool, const BuildInfo& info) {
  std::string text = fmt::format("{} (quipu) {}\n", tool, info.version);
  std::size_t width = 0;
  const ThreadChoice choice = choose_threads(thread_hints(std::nullopt));
  BuildInfo shown = info;
  shown.parts.emplace_back("threads", fmt::format("{} (from {})", choice.threads, choice.source));
  for (const auto& [name, value] : shown.parts) width = std::max(width, name.size());
  for (const auto& [name, value] : shown.parts) text += fmt::format("{:<{}}  {}\n", name, width, value);
  return text;
}

std::string build_line(const BuildInfo& info) {
  std::string line = "quipu " + info.version;
  for (const auto& [name, value] : info.parts) line += fmt::format("; {} {}", name, value);
  return line;
}

}  // namespace quipu
