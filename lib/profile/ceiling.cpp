#include "profile/ceiling.h"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/stopwatch.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/linear_products.h"
#include "tensor/tensor.h"

namespace quipu {

double Ceiling::seconds(double flops, double bytes) const { return std::max(flops / flops_per_s, bytes / bytes_per_s); }

inline namespace QUIPU_REAL_NS {
namespace {

constexpr double kProbe_s = 0.5;
constexpr Index kLeastRuns = 16;

/// The least seconds of a run, over some time.
template <typename F>
double least_seconds(F&& run) {
  run(0);
  double least = std::numeric_limits<double>::infinity();
  const Stopwatch all;
  for (Index i = 0; i < kLeastRuns || all.seconds() < kProbe_s; ++i) {
    const Stopwatch one;
    run(i);
    least = std::min(least, one.seconds());
  }
  return least;
}

// Both probes time short pieces: the system takes a processor away for milliseconds, and what is shorter gets through.

double product_rate() {
  constexpr Index kSide = 512;
  const Tensor a = Tensor::full({kSide, kSide}, Real{0.5}), b = Tensor::full({kSide, kSide}, Real{0.25});
  const Tensor c({kSide, kSide});
  const double flops = 2.0 * kSide * kSide * kSide;
  if (linear_precision() == Precision::bf16) {
    const RoundedMatrix a16(a.matrix()), b16(b.matrix());
    return flops /
           least_seconds([&](Index) { onednn::multiply(c.matrix(), a16.matrix(), false, b16.matrix(), false, false); });
  }
  return flops / least_seconds([&](Index) { blas::multiply(c.matrix(), a.matrix(), b.matrix()); });
}

double read_bandwidth() {
  constexpr Index kBlock = 1 << 16, kBlocks = 128, kPieces = 16;  // a piece: 32 MiB of float
  const Tensor array = Tensor::full({kBlock * kBlocks * kPieces}, Real{1});
  std::vector<Real> sums(static_cast<std::size_t>(kBlocks));
  const double seconds = least_seconds([&](Index run) {
    const Real* const piece = array.data() + run % kPieces * kBlocks * kBlock;
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < kBlocks; ++i) sums[static_cast<std::size_t>(i)] = kernels::sum(piece + i * kBlock, kBlock);
  });
  return static_cast<double>(kBlock * kBlocks) * sizeof(Real) / seconds;
}

}  // namespace

Ceiling probe_ceiling() { return {omp_get_max_threads(), product_rate(), read_bandwidth()}; }

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
