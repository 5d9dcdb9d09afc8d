#include "profile/process_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace quipu {
namespace {

namespace fs = std::filesystem;

/// The value of a line "VmHWM:  1234 kB", in bytes.
std::size_t line_bytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  return 0;
}

std::optional<std::size_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

/// Of version 2 control groups: the least that this process's group and those above it leave.
std::size_t group_left() {
  std::size_t left = std::numeric_limits<std::size_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (fs::path at = fs::path(line.substr(3)).relative_path();; at = at.parent_path()) {
      const fs::path folder = fs::path("/sys/fs/cgroup") / at;
      const auto most = number_in(folder / "memory.max"), used = number_in(folder / "memory.current");
      if (most && used) left = std::min(left, *most > *used ? *most - *used : 0);
      if (at.empty()) break;
    }
  }
  return left;
}

}  // namespace

std::size_t resident_now() { return line_bytes("/proc/self/status", "VmRSS"); }
std::size_t resident_peak() { return line_bytes("/proc/self/status", "VmHWM"); }
void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }
std::size_t memory_left() { return std::min(line_bytes("/proc/meminfo", "MemAvailable"), group_left()); }

void limit_memory(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const rlim_t wanted = line_bytes("/proc/self/status", "VmData") + bytes;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace quipu
