#pragma once
#include <vector>

#include "base/rng.h"
#include "tensor/weight.h"

namespace quipu_test {

inline std::vector<float> normal_floats(quipu::Index count, std::uint64_t seed) {
  const quipu::Rng rng(seed, 0, 0);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(rng.normal(i));
  return x;
}

/// A random matrix in a format.
inline quipu::PackedMatrix random_packed(quipu::NumberFormat format, quipu::Index rows, quipu::Index cols) {
  quipu::PackedMatrix packed(format, rows, cols);
  packed.encode(0, normal_floats(rows * cols, 7));
  return packed;
}

inline constexpr quipu::NumberFormat kPackedFormats[] = {quipu::NumberFormat::bf16, quipu::NumberFormat::q8,
                                                         quipu::NumberFormat::q4};

}  // namespace quipu_test
