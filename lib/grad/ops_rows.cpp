#include "grad/ops_rows.h"

#include <algorithm>
#include <vector>

#include "base/blocks.h"
#include "grad/reuse.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRowBlock = 64;

void scale_rows_into(Matrix y, const Real* factors, Matrix x) {
  for_blocks(x.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) kernels::scale(y.row(r), factors[r], x.row(r), x.cols);
  });
}

/// y [n,W] = c times the sum of each `heads` rows of x [n heads,W].
void sum_heads_into(Matrix y, Matrix x, Index heads, Real c) {
  for_blocks(y.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      kernels::scale(y.row(r), c, x.row(r * heads), y.cols);
      for (Index h = 1; h < heads; ++h) kernels::axpy(y.row(r), c, x.row(r * heads + h), y.cols);
    }
  });
}

/// Each row of x [n,W], times c, for `heads` rows of y [n heads,W].
void repeat_into(Matrix y, Matrix x, Index heads, Real c) {
  for_blocks(x.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      for (Index h = 0; h < heads; ++h) kernels::scale(y.row(r * heads + h), c, x.row(r), x.cols);
  });
}

}  // namespace

Var scale_rows(Tape& tape, const Var& x, const Var& factors) {
  const OpScope op_scope("scale rows");
  const Matrix rows = x.value().matrix();
  if (factors.value().count() != rows.rows)
    throw ShapeError("scale rows: {} factors for {} rows", factors.value().count(), rows.rows);
  Tensor y(x.shape());
  scale_rows_into(y.matrix(), factors.value().data(), rows);
  return tape.record(std::move(y), {&x, &factors},
                     [kept = factors.wants_gradient() ? x.value() : Tensor{}, f = factors.value(), dx = x.gradient(),
                      df = factors.gradient()](const Tensor& dy) {
                       const Matrix g = dy.matrix();
                       if (df) {
                         Tensor sums(f.shape());
                         for_blocks(g.rows, kRowBlock, [&](Index begin, Index end) {
                           for (Index r = begin; r < end; ++r)
                             sums.data()[r] = kernels::dot(g.row(r), kept.matrix().row(r), g.cols);
                         });
                         df->add(std::move(sums));
                       }
                       if (!dx) return;
                       const Tensor scaled = reuse_or_new(dy);
                       scale_rows_into(scaled.matrix(), f.data(), g);
                       dx->add(scaled);
                     });
}

Var mean_heads(Tape& tape, const Var& x) {
  const OpScope op_scope("mean heads");
  const Index heads = x.extent(-2);
  if (heads == 1) return x;
  Shape shape = x.shape();
  shape[-2] = 1;
  Tensor y(shape);
  const Real share = 1 / static_cast<Real>(heads);
  sum_heads_into(y.matrix(), x.value().matrix(), heads, share);
  return tape.record(std::move(y), {&x}, [slot = x.gradient(), shape = x.shape(), heads, share](const Tensor& dy) {
    Tensor dx(shape);
    repeat_into(dx.matrix(), dy.matrix(), heads, share);
    slot->add(std::move(dx));
  });
}

Var repeat_heads(Tape& tape, const Var& x, Index heads) {
  const OpScope op_scope("repeat heads");
  std::vector<Index> extents(x.shape().begin(), x.shape().end());
  extents.insert(extents.end() - 1, heads);
  Tensor y{Shape(std::span<const Index>(extents))};
  repeat_into(y.matrix(), x.value().matrix(), heads, 1);
  return tape.record(std::move(y), {&x}, [slot = x.gradient(), shape = x.shape(), heads](const Tensor& dy) {
    Tensor dx(shape);
    sum_heads_into(dx.matrix(), dy.matrix(), heads, 1);
    slot->add(std::move(dx));
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
