#include "mixers/random_features.h"

#include <algorithm>
#include <cmath>

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// The length of a vector of `width` normal numbers.
double random_length(const Rng& rng, Index row, Index width) {
  double squares = 0;
  for (Index c = 0; c < width; ++c) {
    const double x = rng.normal(static_cast<std::uint64_t>(row * width + c));
    squares += x * x;
  }
  return std::sqrt(squares);
}

}  // namespace

Initializer orthogonal_features(Index rows, Index width, bool signs) {
  return [drawn = signs ? rows / 2 : rows, width, signs](std::span<Real> values, const Rng& rng) {
    const Rng lengths(rng.bits(0), 0, 0);
    const auto row_of = [&](Index row) { return values.data() + row * width; };
    for (Index begin = 0; begin < drawn; begin += width) {
      const Index count = std::min(width, drawn - begin);
      orthogonal(count, width)({row_of(begin), static_cast<std::size_t>(count * width)},
                               Rng(rng.bits(static_cast<std::uint64_t>(begin + 1)), 0, 0));
    }
    for (Index r = 0; r < drawn; ++r) {
      const auto length = static_cast<Real>(random_length(lengths, r, width));
      for (Index c = 0; c < width; ++c) {
        row_of(r)[c] *= length;
        if (signs) row_of(drawn + r)[c] = -row_of(r)[c];
      }
    }
  };
}

}  // namespace quipu::inline QUIPU_REAL_NS
