#include "grad/parameter.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tensor/blas.h"

using namespace quipu;

namespace {

/// How far the products of the rows (or columns) of an orthogonal matrix are from gain^2 times the identity.
double orthogonality_error(Index out, Index in, double gain) {
  Tensor w({out, in});
  orthogonal(out, in, gain)(w.span(), Rng(5, 0, 1));
  const Index n = std::min(out, in);
  Tensor products({n, n});
  if (out > in)
    blas::multiply_at(products.matrix(), w.matrix(), w.matrix());
  else
    blas::multiply_bt(products.matrix(), w.matrix(), w.matrix());
  double worst = 0;
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < n; ++c)
      worst =
          std::max(worst, std::abs(static_cast<double>(products.matrix()(r, c)) / (gain * gain) - (r == c ? 1 : 0)));
  return worst;
}

}  // namespace

TEST_CASE("orthogonal initialiser: rows or columns are orthogonal, of the length asked for") {
  for (const auto& [out, in] :
       {std::pair<Index, Index>{1, 1}, {1, 7}, {7, 1}, {40, 40}, {33, 90}, {200, 64}, {300, 300}})
    for (const double gain : {1.0, 0.5, 2.0}) {
      CAPTURE(out);
      CAPTURE(in);
      CHECK(orthogonality_error(out, in, gain) < (sizeof(Real) == 8 ? 1e-13 : 2e-6));
    }
}

TEST_CASE("orthogonal initialiser: another seed gives another matrix, the same seed the same") {
  Tensor a({5, 9}), b({5, 9}), c({5, 9});
  const Initializer fill = orthogonal(5, 9);
  fill(a.span(), Rng(1, 0, 1)), fill(b.span(), Rng(1, 0, 1)), fill(c.span(), Rng(2, 0, 1));
  CHECK(std::equal(a.span().begin(), a.span().end(), b.span().begin()));
  CHECK(std::abs(a.data()[0] - c.data()[0]) > 1e-6);
}
