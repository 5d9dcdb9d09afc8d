#include "grad/ops_shape.h"

#include <algorithm>
#include <numeric>

#include "base/blocks.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Where row `pick` of lane `lane` stands: in x if it is one of its `first` rows, else in z.
Real* row_of(const Tensor& x, const Tensor& z, Index first, Index lane, Index pick, Index size) {
  if (pick < first) return x.data() + (lane * first + pick) * size;
  return z.data() + (lane * z.extent(1) + pick - first) * size;
}

/// fn(row of x, row of piece, piece's width) for all rows and all pieces that are there.
template <typename F>
void for_pieces(const Tensor& x, std::span<const Tensor> pieces, const std::vector<Index>& widths, F&& fn) {
  const Index all = x.extent(-1);
  for_blocks(x.shape().rows(), 256, [&](Index begin, Index end) {
    for (Index r = begin, at = 0; r < end; ++r, at = 0)
      for (std::size_t i = 0; i < widths.size(); at += widths[i++])
        fn(x.data() + r * all + at, pieces[i].defined() ? pieces[i].data() + r * widths[i] : nullptr, widths[i]);
  });
}

}  // namespace

Var pick_rows(Tape& tape, const Var& x, const Var& z, const std::vector<Index>& picks, Index n) {
  const Shape& model = x.defined() ? x.shape() : z.shape();
  const Index lanes = model[0], first = x.defined() ? x.extent(1) : 0;
  Shape shape = model;
  shape[1] = n;
  const Index size =
      model.count() == 0 ? shape.count() / std::max<Index>(1, lanes * n) : model.count() / (lanes * model[1]);
  Tensor y(shape);
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < lanes * n; ++i) {
    const Index pick = picks[static_cast<std::size_t>(i)];
    Real* const to = y.data() + i * size;
    if (pick < 0)
      std::fill_n(to, size, Real{0});
    else
      std::copy_n(row_of(x.value(), z.value(), first, i / n, pick, size), size, to);
  }
  return tape.record(std::move(y), {&x, &z},
                     [picks, n, lanes, first, size, x_shape = x.shape(), z_shape = z.shape(), dx = x.gradient(),
                      dz = z.gradient()](const Tensor& dy) {
                       const Tensor gx = dx || first > 0 ? Tensor::zeros(x_shape) : Tensor{};
                       const Tensor gz = z_shape.rank() > 0 ? Tensor::zeros(z_shape) : Tensor{};
                       for (Index i = 0; i < lanes * n; ++i)
                         if (const Index pick = picks[static_cast<std::size_t>(i)]; pick >= 0)
                           std::copy_n(dy.data() + i * size, size, row_of(gx, gz, first, i / n, pick, size));
                       add_gradient(dx, gx);
                       add_gradient(dz, gz);
                     });
}

std::vector<Var> split_columns(Tape& tape, const Var& x, const std::vector<Index>& widths) {
  if (const Index all = std::accumulate(widths.begin(), widths.end(), Index{0}); all != x.extent(-1))
    throw ShapeError("split: {} columns in {} pieces of {}", x.extent(-1), widths.size(), all);
  std::vector<Tensor> pieces;
  for (const Index width : widths) {
    Shape shape = x.shape();
    shape[-1] = width;
    pieces.emplace_back(shape);
  }
  for_pieces(x.value(), pieces, widths, [](const Real* from, Real* to, Index n) { std::copy_n(from, n, to); });
  return tape.record_all(pieces, {&x}, [widths, shape = x.shape(), dx = x.gradient()](std::span<Tensor> dout) {
    const Tensor d(shape);
    for_pieces(d, dout, widths, [](Real* to, const Real* from, Index n) {
      if (from != nullptr)
        std::copy_n(from, n, to);
      else
        std::fill_n(to, n, Real{0});
    });
    add_gradient(dx, d);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
