#pragma once
#include "base/real.h"

namespace quipu {

/// What this machine can do with so many threads, measured.
struct Ceiling {
  int threads = 1;
  double flops_per_s = 0;  ///< of a large square matrix product, in the numbers that linear layers multiply
  double bytes_per_s = 0;  ///< of reading an array far larger than the caches

  /// The least seconds for so much work, where products and memory overlap, and whether memory is what bounds them.
  double seconds(double flops, double bytes) const;
  bool memory_bound(double flops, double bytes) const { return bytes / bytes_per_s > flops / flops_per_s; }
};

inline namespace QUIPU_REAL_NS {

/// Probes with the threads that OpenMP has now, about a second: the best of several runs, for what disturbs a run can
/// only make it slower. Takes 512 MiB meanwhile.
Ceiling probe_ceiling();

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
