#include "grad/ops_features.h"

#include <cmath>
#include <vector>

#include "base/blocks.h"
#include "grad/ops_linear.h"
#include "grad/reuse.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kRowBlock = 64;

/// fn(row) for all rows, in parallel.
template <typename F>
void for_rows(Index rows, F&& fn) {
  for_blocks(rows, kRowBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) fn(r);
  });
}

Index weight_groups(const Tensor& weight, Index width) {
  if (!weight.defined()) return 1;
  if (weight.count() % width != 0)
    throw ShapeError("unit rows: weights of shape {} for rows of {}", weight.shape().text(), width);
  return weight.count() / width;
}

const Real* weight_of(const Tensor& weight, Index groups, Index row, Index width) {
  return weight.defined() ? weight.data() + row % groups * width : nullptr;
}

Real inverse_size(const Real* x, Index n, double eps) {
  const double size = std::sqrt(static_cast<double>(kernels::sum_of_squares(x, n))) + eps;
  return size > 0 ? static_cast<Real>(1 / size) : Real{0};
}

void unit_row(Real* y, const Real* x, const Real* weight, Real inverse, Index n) {
  kernels::scale(y, inverse, x, n);
  if (weight != nullptr) kernels::multiply(y, y, weight, n);
}

/// y = w x / (n + eps), n = |x|:  dx = (w dy - x <w dy, x> / (n (n + eps))) / (n + eps), without the second term at 0.
struct UnitRowsBackward {
  Tensor x, weight, inverse;
  double eps;
  std::shared_ptr<Gradient> dx, dweight;

  void run(const Tensor& dy) const {
    const Matrix rows = x.matrix(), g = dy.matrix();
    const Index groups = weight_groups(weight, rows.cols);
    if (dweight) add_weights(rows, g, groups);
    if (!dx) return;
    const Tensor out = reuse_or_new(dy);
    for_rows(rows.rows, [&](Index r) {
      const Real* const w = weight_of(weight, groups, r, rows.cols);
      Real* const d = out.matrix().row(r);
      const double size = std::sqrt(static_cast<double>(kernels::sum_of_squares(rows.row(r), rows.cols)));
      if (w != nullptr)
        kernels::multiply(d, g.row(r), w, rows.cols);
      else if (d != g.row(r))
        std::copy_n(g.row(r), rows.cols, d);
      const double inner = static_cast<double>(kernels::dot(d, rows.row(r), rows.cols));
      const Real by = inverse.data()[r];
      if (size > 0)
        kernels::axpy(d, static_cast<Real>(-inner * static_cast<double>(by) / size), rows.row(r), rows.cols);
      kernels::scale(d, by, d, rows.cols);
    });
    dx->add(out);
  }

  /// dw = sum over tokens of dy x / (n + eps).
  void add_weights(Matrix rows, Matrix g, Index groups) const {
    Tensor products(x.shape());
    for_rows(rows.rows, [&](Index r) {
      Real* const p = products.matrix().row(r);
      kernels::multiply(p, rows.row(r), g.row(r), rows.cols);
      kernels::scale(p, inverse.data()[r], p, rows.cols);
    });
    Tensor sums = Tensor::zeros(weight.shape());
    const Index width = groups * rows.cols;
    add_column_sums(sums.data(), {products.data(), products.count() / width, width, width});
    dweight->add(std::move(sums));
  }
};

}  // namespace

Var positive_exponents(Tape& tape, const Var& x, const Tensor& projection, Real c) {
  const OpScope op_scope("positive exponents");
  const Matrix rows = x.value().matrix();
  if (projection.extent(1) != rows.cols)
    throw ShapeError("positive exponents: rows of {} for a projection of {}", rows.cols, projection.shape().text());
  Shape shape = x.shape();
  shape[-1] = projection.extent(0);
  Tensor u(shape);
  blas::multiply_bt(u.matrix(), rows, projection.matrix(), 0, c);
  for_rows(rows.rows, [&](Index r) {
    const Real half = c * c * kernels::sum_of_squares(rows.row(r), rows.cols) / 2;
    Real* const row = u.matrix().row(r);
    for (Index m = 0; m < shape[-1]; ++m) row[m] -= half;
  });
  return tape.record(std::move(u), {&x}, [x = x.value(), projection, c, slot = x.gradient()](const Tensor& du) {
    Tensor dx(x.shape());
    blas::multiply(dx.matrix(), du.matrix(), projection.matrix(), 0, c);
    for_rows(dx.matrix().rows, [&](Index r) {
      kernels::axpy(dx.matrix().row(r), -c * c * kernels::sum(du.matrix().row(r), du.matrix().cols), x.matrix().row(r),
                    x.matrix().cols);
    });
    slot->add(std::move(dx));
  });
}

Var unit_rows(Tape& tape, const Var& x, const Var& weight, double eps) {
  const OpScope op_scope("unit rows");
  const Matrix rows = x.value().matrix();
  const Index groups = weight_groups(weight.value(), rows.cols);
  const Tensor y(x.shape()), inverse({rows.rows});
  for_rows(rows.rows, [&](Index r) {
    inverse.data()[r] = inverse_size(rows.row(r), rows.cols, eps);
    unit_row(y.matrix().row(r), rows.row(r), weight_of(weight.value(), groups, r, rows.cols), inverse.data()[r],
             rows.cols);
  });
  UnitRowsBackward backward{x.value(), weight.value(), inverse, eps, x.gradient(), weight.gradient()};
  return tape.record(y, {&x, &weight}, [backward = std::move(backward)](const Tensor& dy) { backward.run(dy); });
}

Var sine_cosine(Tape& tape, const Var& u, Real c) {
  const OpScope op_scope("sine cosine");
  Shape shape = u.shape();
  shape[-1] *= 2;
  const Tensor y(shape);
  const Matrix in = u.value().matrix();
  for_blocks(in.rows, kRowBlock,
             [&](Index begin, Index end) { sine_cosine_into(y.matrix().slice(begin, end), in.slice(begin, end), c); });
  return tape.record(y, {&u}, [y, slot = u.gradient(), shape = u.shape()](const Tensor& dy) {
    Tensor du(shape);
    const Index half = shape[-1];
    for_rows(shape.rows(), [&](Index r) {
      const Real *const value = y.matrix().row(r), *const d = dy.matrix().row(r);
      Real* const out = du.matrix().row(r);
      for (Index i = 0; i < half; ++i) out[i] = d[i] * value[half + i] - d[half + i] * value[i];
    });
    slot->add(std::move(du));
  });
}

void unit_rows_into(Matrix y, Matrix x, const Tensor& weight, double eps) {
  const Index groups = weight_groups(weight, x.cols);
  for (Index r = 0; r < x.rows; ++r)
    unit_row(y.row(r), x.row(r), weight_of(weight, groups, r, x.cols), inverse_size(x.row(r), x.cols, eps), x.cols);
}

void sine_cosine_into(Matrix y, Matrix u, Real c) {
  for (Index r = 0; r < u.rows; ++r) {
    kernels::sine_cosine(y.row(r), y.row(r) + u.cols, u.row(r), u.cols);
    kernels::scale(y.row(r), c, y.row(r), y.cols);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
