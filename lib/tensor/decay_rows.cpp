#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/decay_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>  // before highway.h
//
#include <hwy/highway.h>

#include "tensor/decay_rows.h"

// Plain loops: the compiler vectorises them for each target.
HWY_BEFORE_NAMESPACE();
namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE {

bool add_to_sums(double* HWY_RESTRICT sums, Real* HWY_RESTRICT rounded, const Real* HWY_RESTRICT x, double low,
                 Index n) {
  int below = 0;
  for (Index c = 0; c < n; ++c) {
    sums[c] += static_cast<double>(x[c]);
    rounded[c] = static_cast<Real>(sums[c]);
    below |= sums[c] > low ? 0 : 1;
  }
  return below == 0;
}

void add_products(double* HWY_RESTRICT sums, const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b, Index n) {
  for (Index c = 0; c < n; ++c) sums[c] += static_cast<double>(a[c]) * static_cast<double>(b[c]);
}

void subtract_products(double* HWY_RESTRICT sums, const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b, Index n) {
  for (Index c = 0; c < n; ++c) sums[c] -= static_cast<double>(a[c]) * static_cast<double>(b[c]);
}

void round_sums(Real* HWY_RESTRICT rounded, const double* HWY_RESTRICT sums, Index n) {
  for (Index c = 0; c < n; ++c) rounded[c] = static_cast<Real>(sums[c]);
}

}  // namespace quipu::inline QUIPU_REAL_NS::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quipu::inline QUIPU_REAL_NS::kernels {

HWY_EXPORT(add_to_sums);
HWY_EXPORT(add_products);
HWY_EXPORT(subtract_products);
HWY_EXPORT(round_sums);

bool add_to_sums(double* sums, Real* rounded, const Real* x, double low, Index n) {
  return HWY_DYNAMIC_DISPATCH(add_to_sums)(sums, rounded, x, low, n);
}
void add_products(double* sums, const Real* a, const Real* b, Index n) {
  HWY_DYNAMIC_DISPATCH(add_products)(sums, a, b, n);
}
void subtract_products(double* sums, const Real* a, const Real* b, Index n) {
  HWY_DYNAMIC_DISPATCH(subtract_products)(sums, a, b, n);
}
void round_sums(Real* rounded, const double* sums, Index n) { HWY_DYNAMIC_DISPATCH(round_sums)(rounded, sums, n); }

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
#endif  // HWY_ONCE
