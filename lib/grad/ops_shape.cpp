#include "grad/ops_shape.h"

#include <algorithm>
#include <numeric>

#include "base/blocks.h"
#include "tensor/kernels.h"

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
  const OpScope op_scope("pick rows");
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

Var gather_rows(Tape& tape, const std::vector<Var>& sources, const std::vector<Index>& picks, const Shape& shape) {
  const OpScope op_scope("gather rows");
  const Index width = shape[-1], count = shape.count() / width;
  struct Place {
    std::size_t source;
    Index row;
  };
  std::vector<Place> places;
  for (const Index pick : picks) {
    Place place{0, pick};
    while (place.row >= 0 && place.row >= sources[place.source].shape().rows())
      place.row -= sources[place.source++].shape().rows();
    places.push_back(place);
  }
  for (const Var& source : sources)
    if (source.extent(-1) != width) throw ShapeError("gather: rows of {} into rows of {}", source.extent(-1), width);
  if (static_cast<Index>(picks.size()) != count) throw ShapeError("gather: {} picks for {} rows", picks.size(), count);

  Tensor y(shape);
  for_blocks(count, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto [source, row] = places[static_cast<std::size_t>(i)];
      if (row < 0)
        std::fill_n(y.data() + i * width, width, Real{0});
      else
        std::copy_n(sources[source].value().data() + row * width, width, y.data() + i * width);
    }
  });
  if (!tape.recording() || std::ranges::none_of(sources, &Var::wants_gradient)) return Var(std::move(y));
  Var out = Var::leaf(std::move(y));
  std::vector<std::shared_ptr<Gradient>> slots;
  for (const Var& source : sources) slots.push_back(source.gradient());
  tape.push({out.gradient()}, [places = std::move(places), slots = std::move(slots), width](std::span<Tensor> dy) {
    std::vector<Tensor> sums;
    for (const auto& slot : slots) sums.push_back(slot ? Tensor::zeros(slot->shape()) : Tensor{});
    // Columns apart, so that rows that are picked several times need no care.
    for_blocks(width, 32, [&](Index begin, Index end) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto [source, row] = places[i];
        if (row < 0 || !sums[source].defined()) continue;
        kernels::add_into(sums[source].data() + row * width + begin,
                          dy[0].data() + static_cast<Index>(i) * width + begin, end - begin);
      }
    });
    for (std::size_t i = 0; i < slots.size(); ++i) add_gradient(slots[i], sums[i]);
  });
  return out;
}

std::vector<Var> split_columns(Tape& tape, const Var& x, const std::vector<Index>& widths) {
  const OpScope op_scope("split columns");
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
