#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "golden.h"
#include "tensor/tensor.h"
#include "tolerance.h"

namespace quipu::inline QUIPU_REAL_NS {

inline Tensor tensor_of(const GoldenTensor& golden) {
  return Tensor::from(Shape(std::span<const Index>(golden.shape)), golden.values);
}

/// max |a - b| / max |b|, or over `size` where that is larger; infinite where one is not finite or the counts differ.
template <typename A, typename B>
double relative_error(const A& a, const B& b, double size = 0) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0, largest = size;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    worst = std::max(worst, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  return largest > 0 ? worst / largest : worst;
}

inline double largest_element(const GoldenTensor& x) {
  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::abs(value));
  return largest;
}

inline double relative_error(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? relative_error(a.span(), b.span()) : INFINITY;
}

inline double relative_error(const Tensor& a, const GoldenTensor& b) {
  return a.defined() ? relative_error(a.span(), b.values) : INFINITY;
}

}  // namespace quipu::inline QUIPU_REAL_NS
