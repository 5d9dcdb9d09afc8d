#include "profile/ceiling.h"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "profile/stopwatch.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace quipu {

double Ceiling::seconds(double flops, double bytes) const { return std::max(flops / flops_per_s, bytes / bytes_per_s); }

inline namespace QUIPU_REAL_NS {
namespace {

constexpr double kProbe_s = 0.4;

/// The least seconds of a run, over some time and three runs at least.
template <typename F>
double least_seconds(F&& run) {
  run();
  double least = 1e300;
  const Stopwatch all;
  for (int i = 0; i < 3 || all.seconds() < kProbe_s; ++i) {
    const Stopwatch one;
    run();
    least = std::min(least, one.seconds());
  }
  return least;
}

double product_rate() {
  constexpr Index kSide = 1536;
  const Tensor a = Tensor::full({kSide, kSide}, Real{0.5}), b = Tensor::full({kSide, kSide}, Real{0.25});
  const Tensor c({kSide, kSide});
  const double flops = 2.0 * kSide * kSide * kSide;
  return flops / least_seconds([&] { blas::multiply(c.matrix(), a.matrix(), b.matrix()); });
}

double read_bandwidth() {
  constexpr Index kBlock = 1 << 16, kBlocks = (Index{512} << 20) / (kBlock * static_cast<Index>(sizeof(Real)));
  const Tensor array = Tensor::full({kBlock * kBlocks}, Real{1});
  std::vector<Real> sums(static_cast<std::size_t>(kBlocks));
  const double seconds = least_seconds([&] {
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < kBlocks; ++i)
      sums[static_cast<std::size_t>(i)] = kernels::sum(array.data() + i * kBlock, kBlock);
  });
  return static_cast<double>(array.count()) * sizeof(Real) / seconds;
}

}  // namespace

Ceiling probe_ceiling() { return {omp_get_max_threads(), product_rate(), read_bandwidth()}; }

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
