#include "grad/ops_quotient.h"

#include "base/blocks.h"
#include "grad/reuse.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRowBlock = 64;

}  // namespace

Var quotient(Tape& tape, const Var& x, const Var& d, const Divisor& divisor) {
  const OpScope op_scope("quotient");
  const Matrix rows = x.value().matrix();
  if (d.value().count() != rows.rows)
    throw ShapeError("quotient: {} denominators for {} rows", d.value().count(), rows.rows);
  const Tensor y(x.shape());
  for_blocks(rows.rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      kernels::scale(y.matrix().row(r), 1 / divisor(d.value().data()[r]), rows.row(r), rows.cols);
  });
  return tape.record(y, {&x, &d},
                     [y, kept = d.value(), divisor, dx = x.gradient(), dd = d.gradient()](const Tensor& dy) {
                       const Matrix g = dy.matrix(), out = y.matrix();
                       const Tensor gx = reuse_or_new(dy), gd(kept.shape());
                       for_blocks(g.rows, kRowBlock, [&](Index begin, Index end) {
                         for (Index r = begin; r < end; ++r) {
                           const Real value = kept.data()[r], factor = 1 / divisor(value);
                           gd.data()[r] = -divisor.slope(value) * factor * kernels::dot(g.row(r), out.row(r), g.cols);
                           kernels::scale(gx.matrix().row(r), factor, g.row(r), g.cols);
                         }
                       });
                       add_gradient(dx, gx);
                       add_gradient(dd, gd);
                     });
}

}  // namespace quipu::inline QUIPU_REAL_NS
