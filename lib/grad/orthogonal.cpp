#include <algorithm>
#include <cmath>

#include "base/blocks.h"
#include "grad/parameter.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRows = 32;  ///< rows that are made orthogonal together

/// Makes each of a few rows orthogonal to those before it, of length 1.
void orthonormalise_few(Matrix rows) {
  for (Index r = 0; r < rows.rows; ++r) {
    Real* const row = rows.row(r);
    for (Index s = 0; s < r; ++s)
      kernels::axpy(row, -kernels::dot(row, rows.row(s), rows.cols), rows.row(s), rows.cols);
    kernels::scale(row, 1 / std::sqrt(kernels::sum_of_squares(row, rows.cols)), row, rows.cols);
  }
}

/// Gram-Schmidt over the rows (no more of them than columns), block by block and each block twice: the second time
/// mends what the first one's rounding left.
void orthonormalise(Matrix rows) {
  Tensor shares({kRows, std::max<Index>(rows.rows, 1)});
  for (Index begin = 0; begin < rows.rows; begin += kRows) {
    const Index end = std::min(rows.rows, begin + kRows);
    const Matrix block = rows.slice(begin, end), before = rows.slice(0, begin);
    const Matrix share{shares.data(), end - begin, begin, std::max<Index>(begin, 1)};
    for (int round = 0; round < 2; ++round) {
      if (begin > 0) {
        blas::multiply_bt(share, block, before);
        blas::multiply(block, share, before, 1, -1);
      }
      orthonormalise_few(block);
    }
  }
}

}  // namespace

Initializer orthogonal(Index out, Index in, double gain) {
  return [out, in, gain](std::span<Real> values, const Rng& rng) {
    const bool tall = out > in;
    Tensor made;
    if (tall) made = Tensor({in, out});
    const Matrix rows{tall ? made.data() : values.data(), std::min(out, in), std::max(out, in), std::max(out, in)};
    for_blocks(out * in, kElementBlock, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) rows.data[i] = static_cast<Real>(rng.normal(static_cast<std::uint64_t>(i)));
    });
    orthonormalise(rows);
    for (Index r = 0; r < out; ++r)
      for (Index c = 0; c < in; ++c) {
        Real& value = values[static_cast<std::size_t>(r * in + c)];
        value = static_cast<Real>(gain) * (tall ? rows(c, r) : value);
      }
  };
}

}  // namespace quipu::inline QUIPU_REAL_NS
