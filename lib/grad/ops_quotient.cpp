#include "grad/ops_quotient.h"

#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

Var quotient(Tape& tape, const Var& x, const Var& d, double eps) {
  const Matrix rows = x.value().matrix();
  if (d.value().count() != rows.rows)
    throw ShapeError("quotient: {} denominators for {} rows", d.value().count(), rows.rows);
  Tensor y(x.shape()), inverse(d.shape());
#pragma omp parallel for schedule(static)
  for (Index r = 0; r < rows.rows; ++r) {
    inverse.data()[r] = 1 / (d.value().data()[r] + static_cast<Real>(eps));
    kernels::scale(y.data() + r * rows.cols, inverse.data()[r], rows.row(r), rows.cols);
  }
  return tape.record(y, {&x, &d}, [y, inverse, dx = x.gradient(), dd = d.gradient()](const Tensor& dy) {
    const Matrix g = dy.matrix(), out = y.matrix();
    Tensor gx(dy.shape()), gd(inverse.shape());
#pragma omp parallel for schedule(static)
    for (Index r = 0; r < g.rows; ++r) {
      const Real factor = inverse.data()[r];
      kernels::scale(gx.data() + r * g.cols, factor, g.row(r), g.cols);
      gd.data()[r] = -factor * kernels::dot(g.row(r), out.row(r), g.cols);
    }
    add_gradient(dx, gx);
    add_gradient(dd, gd);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
