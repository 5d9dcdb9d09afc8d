#include "mixers/random_features.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace quipu;

TEST_CASE("random features are orthogonal in blocks, as long as normal vectors, and come with both signs") {
  const Index width = 6, rows = 400 * width + 4;  // the last block is not a whole one
  std::vector<Real> x(static_cast<std::size_t>(rows * width));
  orthogonal_features(rows, width)(x, Rng(5, 0, 1));
  const auto product = [&](Index a, Index b) {
    double sum = 0;
    for (Index c = 0; c < width; ++c)
      sum += static_cast<double>(x[static_cast<std::size_t>(a * width + c)]) *
             static_cast<double>(x[static_cast<std::size_t>(b * width + c)]);
    return sum;
  };
  double squares = 0, mean = 0;
  for (Index a = 0; a < rows; ++a) {
    squares += product(a, a) / static_cast<double>(rows);
    mean += static_cast<double>(x[static_cast<std::size_t>(a * width)]) / static_cast<double>(rows);
    for (Index b = a / width * width; b < a; ++b)
      CHECK(std::abs(product(a, b)) < 1e-5 * std::sqrt(product(a, a) * product(b, b)));
  }
  CHECK(squares == doctest::Approx(width).epsilon(0.05));  // E chi^2
  CHECK(std::abs(mean) < 0.1);

  std::vector<Real> signs(10 * 4);
  orthogonal_features(10, 4, true)(signs, Rng(5, 0, 2));
  for (std::size_t i = 0; i < 20; ++i) CHECK(signs[20 + i] == -signs[i]);
}
