#include "base/threads.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace quipu {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

/// The first number of "8" or "8,2"; nothing where it is no number from 1 to 4096.
std::optional<int> first_number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const std::size_t start = std::min(text->find_first_not_of(" \t"), text->size());
  int number = 0;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data() + start, end, number);
  const bool ends = result.ptr == end || *result.ptr == ',' || *result.ptr == ' ';
  if (result.ec != std::errc{} || !ends || number < 1 || number > 4096) return std::nullopt;
  return number;
}

/// Version 2: "max 100000" or "150000 100000" in cpu.max.
std::optional<double> quota_v2(const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

/// Version 1: cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us.
std::optional<double> quota_v1(const fs::path& folder) {
  std::ifstream quota_file(folder / "cpu.cfs_quota_us");
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

/// The smallest quota of `group` and the groups above it, below the mount point `mount`.
template <typename Read>
void tighten(std::optional<double>& quota, const fs::path& mount, const fs::path& group, const Read& read) {
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    const std::optional<double> here = read(at.empty() ? mount : mount / at);
    if (here && (!quota || *here < *quota)) quota = here;
    if (at.empty()) return;
  }
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const fs::path& self, const fs::path& root) {
  std::optional<double> quota;
  std::ifstream groups(self);
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path" or, in version 2, "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      tighten(quota, root, group, quota_v2);
    } else if (lists_cpu(controllers)) {
      tighten(quota, root / controllers, group, quota_v1);
      tighten(quota, root / "cpu", group, quota_v1);
    }
  }
  return quota;
}

ThreadHints thread_hints(std::optional<int> asked) {
  return {.asked = asked,
          .omp = environment("OMP_NUM_THREADS"),
          .slurm = environment("SLURM_CPUS_PER_TASK"),
          .affinity = std::max(1, omp_get_num_procs()),
          .quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup")};
}

ThreadChoice choose_threads(const ThreadHints& hints) {
  if (hints.asked) return {std::max(1, *hints.asked), "--threads"};
  if (const auto number = first_number(hints.omp)) return {*number, "OMP_NUM_THREADS"};
  if (const auto number = first_number(hints.slurm)) return {*number, "SLURM_CPUS_PER_TASK"};
  const int affinity = std::max(1, hints.affinity);
  if (hints.quota && *hints.quota < affinity) {
    const int capped = std::max(1, static_cast<int>(std::floor(*hints.quota)));
    return {capped, fmt::format("the control group's quota of {:.2f} processors", *hints.quota)};
  }
  return {affinity, "the processors that this process may use"};
}

void set_threads(int threads) { omp_set_num_threads(std::max(1, threads)); }

}  // namespace quipu
