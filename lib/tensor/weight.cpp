#include "tensor/weight.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "tensor/blas.h"
#include "tensor/linear_products.h"
#include "tensor/packed_rows.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kFewRows = 4;                    // of x, that are multiplied one by one
constexpr Index kBlockBytes = Index{16} << 10;   // of a weight: the least that a thread takes
constexpr Index kThreadBytes = Index{64} << 10;  // below, a second thread costs more than it brings
constexpr Index kPanelBytes = Index{512} << 10;  // of expanded numbers, where that is more than kPanelRows
constexpr Index kPanelRows = 192;                // at least: each panel's product copies x into its own order again

/// fn(begin, end) for parts of rows of `row_size` bytes: a thread that is free takes its share of what is left, in one
/// piece, so that large pieces come first and the small ones even out.
template <typename F>
void for_row_blocks(Index rows, Index row_size, F&& fn) {
  if (rows * row_size < kThreadBytes || omp_get_max_threads() == 1) return fn(Index{0}, rows);
  const Index least = std::max<Index>(1, kBlockBytes / row_size);
  std::atomic<Index> next = 0;
#pragma omp parallel
  {
    const Index threads = omp_get_num_threads();
    Index begin = next.load(), end = 0;
    while (begin < rows) {
      end = std::min(rows, begin + std::max(least, (rows - begin + threads - 1) / threads));
      if (!next.compare_exchange_weak(begin, end)) continue;
      fn(begin, end);
      begin = next.load();
    }
  }
}

/// Room of this thread, kept.
template <typename T>
T* room(Index count) {
  static thread_local std::vector<T> kept;
  if (static_cast<Index>(kept.size()) < count) kept.resize(static_cast<std::size_t>(count));
  return kept.data();
}

void multiply_floats(Matrix y, Matrix x, const Tensor& weight, const Real* bias) {
  const Matrix w = weight.matrix();
  if (x.rows <= kFewRows)
    return for_row_blocks(w.rows, w.cols * static_cast<Index>(sizeof(Real)), [&](Index begin, Index end) {
      constexpr Index kTogether = 8;  // rows that stay in the first-level cache from one x to the next
      if (x.rows == 1) return kernels::dot_rows(y.data, w, begin, end, x.data, bias);
      for (; begin < end; begin += kTogether)
        for (Index n = 0; n < x.rows; ++n)
          kernels::dot_rows(y.row(n), w, begin, std::min(end, begin + kTogether), x.row(n), bias);
    });
  linear_product(y, LinearInput(x, w.rows), w, bias);
}

void multiply_panels(Matrix y, Matrix x, const PackedMatrix& w, const Real* bias) {
  const Index stride = padded_columns(w.format(), w.cols());
  const Index most = std::max<Index>(kPanelRows, kPanelBytes / (stride * static_cast<Index>(sizeof(Real))) / 16 * 16);
  const Index panels = (w.rows() + most - 1) / most;
#pragma omp parallel for schedule(dynamic) if (panels > 1)
  for (Index p = 0; p < panels; ++p) {
    const Index begin = p * most, end = std::min(w.rows(), begin + most);
    Real* const numbers = room<Real>(most * stride);
    kernels::expand_rows(numbers, stride, w, begin, end);
    const Matrix out = y.columns(begin, end);
    if (bias != nullptr)
      for (Index n = 0; n < y.rows; ++n) std::copy_n(bias + begin, out.cols, out.row(n));
    blas::multiply_bt(out, x, {numbers, end - begin, w.cols(), stride}, bias != nullptr ? Real{1} : Real{0});
  }
}

#ifndef QUIPU_DOUBLE
void multiply_stored(Matrix y, Matrix x, const PackedMatrix& w, const Real* bias) {
  const Index bytes = kernels::packed_input_bytes(w);
  std::byte* const rooms = room<std::byte>(x.rows * bytes + 64);
  kernels::PackedInput inputs[kFewRows];
  for (Index n = 0; n < x.rows; ++n) inputs[n] = kernels::make_packed_input(w, x.row(n), rooms + n * bytes);
  for_row_blocks(w.rows(), w.row_size(), [&](Index begin, Index end) {
    const Index together = x.rows == 1 ? end - begin : 8;
    for (; begin < end; begin += together)
      for (Index n = 0; n < x.rows; ++n)
        kernels::packed_dot_rows(y.row(n), w, begin, std::min(end, begin + together), inputs[n], bias);
  });
}
#endif

}  // namespace

Weight Weight::rows(Index begin, Index end) const {
  if (is_packed()) return packed_.slice(begin, end);
  return floats_.part(begin * in(), {end - begin, in()});
}

void multiply_weight(Matrix y, Matrix x, const Weight& weight, const Real* bias) {
  if (x.cols != weight.in() || y.cols != weight.out())
    throw ShapeError("linear: input width {} and output width {} for a weight of shape [{}, {}]", x.cols, y.cols,
                     weight.out(), weight.in());
  if (!weight.is_packed()) return multiply_floats(y, x, weight.floats(), bias);
#ifndef QUIPU_DOUBLE
  if (x.rows <= kFewRows) return multiply_stored(y, x, weight.packed(), bias);
#endif
  multiply_panels(y, x, weight.packed(), bias);
}

}  // namespace quipu::inline QUIPU_REAL_NS
