#include "base/threads.h"

#include <doctest/doctest.h>
#include <omp.h>
#include <unistd.h>

#include <fstream>

using namespace quipu;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const char* text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("threads: the order of the sources") {
  ThreadHints hints{.asked = 3, .omp = "5", .slurm = "6", .affinity = 8, .quota = 2.5};
  CHECK(choose_threads(hints).threads == 3);
  CHECK(choose_threads(hints).source == "--threads");
  hints.asked.reset();
  CHECK(choose_threads(hints).threads == 5);
  CHECK(choose_threads(hints).source == "OMP_NUM_THREADS");
  hints.omp = "4,2";
  CHECK(choose_threads(hints).threads == 4);
  for (const char* text : {"", "x", "0", "-1", "99999", "4x"}) {
    hints.omp = text;
    CHECK(choose_threads(hints).threads == 6);
  }
  CHECK(choose_threads(hints).source == "SLURM_CPUS_PER_TASK");
  hints.slurm.reset();
  CHECK(choose_threads(hints).threads == 2);
  CHECK(choose_threads(hints).source == "the control group's quota of 2.50 processors");
  hints.quota = 0.5;
  CHECK(choose_threads(hints).threads == 1);
  hints.quota = 8;
  CHECK(choose_threads(hints).threads == 8);
  hints.quota.reset();
  CHECK(choose_threads(hints).threads == 8);
  CHECK(choose_threads(hints).source == "the processors that this process may use");
}

TEST_CASE("threads: quotas of control groups, of both versions and of the groups above") {
  const fs::path root = fs::temp_directory_path() / ("quipu_cgroup_" + std::to_string(getpid()));
  const fs::path self = root / "self";
  write(self, "0::/job/step\n");
  CHECK_FALSE(cgroup_cpu_quota(self, root));
  write(root / "job/step/cpu.max", "max 100000\n");
  CHECK_FALSE(cgroup_cpu_quota(self, root));
  write(root / "job/cpu.max", "350000 100000\n");
  CHECK(cgroup_cpu_quota(self, root) == 3.5);
  write(root / "cpu.max", "200000 100000\n");
  CHECK(cgroup_cpu_quota(self, root) == 2.0);

  write(self, "12:pids:/x\n4:cpu,cpuacct:/elsewhere\n1:name=systemd:/\n");
  write(root / "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write(root / "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(cgroup_cpu_quota(self, root));
  write(root / "cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  CHECK(cgroup_cpu_quota(self, root) == 1.5);
  CHECK_FALSE(cgroup_cpu_quota(root / "missing", root));
  fs::remove_all(root);
}

TEST_CASE("threads: set_threads sets OpenMP's threads") {
  const int before = omp_get_max_threads();
  set_threads(3);
  CHECK(omp_get_max_threads() == 3);
  set_threads(before);
  CHECK(thread_hints(std::nullopt).affinity >= 1);
}
