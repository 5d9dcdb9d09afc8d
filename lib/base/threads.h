#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace quipu {

/// A number of threads and where it comes from, such as "OMP_NUM_THREADS", for --verbose.
struct ThreadChoice {
  int threads = 1;
  std::string source;
};

/// What the choice depends on.
struct ThreadHints {
  std::optional<int> asked;          // --threads
  std::optional<std::string> omp;    // OMP_NUM_THREADS: its first number counts
  std::optional<std::string> slurm;  // SLURM_CPUS_PER_TASK
  int affinity = 1;                  // processors that this process may run on
  std::optional<double> quota;       // processors that its control group may use at once
};

/// The hints of this process.
ThreadHints thread_hints(std::optional<int> asked);

/// --threads, else OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else the affinity mask, capped by the quota (rounded
/// down, at least 1). A variable that holds no number from 1 to 4096 is passed over.
ThreadChoice choose_threads(const ThreadHints& hints);

/// The smallest CPU quota on the way from this process's control group to the root, in processors, for both versions
/// of control groups; nothing where there is none. `self` is /proc/self/cgroup, `root` where the groups are mounted.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& self, const std::filesystem::path& root);

/// Sets the number of threads of OpenMP's next parallel regions, OpenBLAS's among them; threads >= 1.
void set_threads(int threads);

}  // namespace quipu
