#include "cli/build_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"

namespace quipu {

BuildInfo build_info() {
  BuildInfo info;
  info.version = QUIPU_VERSION;
  const ThreadChoice choice = choose_threads(thread_hints(std::nullopt));
  info.parts = {
      {"compiler", "GCC " __VERSION__},
      {"threads", fmt::format("OpenMP, {} by default (from {})", choice.threads, choice.source)},
      {"MPI", "none"},
  };
  return info;
}

std::string version_text(const std::string& tool, const BuildInfo& info) {
  std::string text = fmt::format("{} (quipu) {}\n", tool, info.version);
  std::size_t width = 0;
  for (const auto& [name, value] : info.parts) width = std::max(width, name.size());
  for (const auto& [name, value] : info.parts) text += fmt::format("{:<{}}  {}\n", name, width, value);
  return text;
}

}  // namespace quipu
