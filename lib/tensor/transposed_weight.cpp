#include "tensor/transposed_weight.h"

#include <algorithm>
#include <vector>

#include "tensor/blas.h"
#include "tensor/packed_rows.h"

namespace quipu::inline QUIPU_REAL_NS {

void multiply_transposed(Matrix y, Matrix x, const Weight& weight) {
  if (x.cols != weight.out() || y.cols != weight.in())
    throw ShapeError("linear, transposed: input width {} and output width {} for a weight of shape [{}, {}]", x.cols,
                     y.cols, weight.out(), weight.in());
  if (!weight.is_packed()) return blas::multiply(y, x, weight.floats().matrix());
  constexpr Index kRows = 64;
  const PackedMatrix& w = weight.packed();
  const Index stride = padded_columns(w.format(), w.cols());
  static thread_local std::vector<Real> numbers;  // kept from call to call
  numbers.resize(std::max(numbers.size(), static_cast<std::size_t>(kRows * stride)));
  for (Index begin = 0; begin < w.rows(); begin += kRows) {
    const Index end = std::min(w.rows(), begin + kRows);
    kernels::expand_rows(numbers.data(), stride, w, begin, end);
    blas::multiply(y, x.columns(begin, end), {numbers.data(), end - begin, w.cols(), stride},
                   begin > 0 ? Real{1} : Real{0});
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
