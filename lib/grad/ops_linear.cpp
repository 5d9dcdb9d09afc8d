#include "grad/ops_linear.h"

#include <algorithm>
#include <vector>

#include "tensor/kernels.h"
#include "tensor/linear_products.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

std::optional<GradientTarget> place_of(const std::shared_ptr<Gradient>& slot, Index rows, Index cols) {
  if (!slot) return std::nullopt;
  const auto [matrix, beta] = slot->target(rows, cols);
  return GradientTarget{matrix, beta != 0};
}

}  // namespace

void linear_into(Matrix y, Matrix x, const Weight& weight, const Tensor& bias) {
  const OpScope op_scope("linear");
  multiply_weight(y, x, weight, bias.defined() ? bias.data() : nullptr);
}

Var linear_untrained(Tape& tape, const Var& x, const Weight& weight, const Var& bias) {
  if (tape.needs({&x, &bias})) throw InternalError("a gradient through a matrix that is not trained");
  Shape shape = x.shape();
  shape[-1] = weight.out();
  Tensor y(shape);
  linear_into(y.matrix(), x.value().matrix(), weight, bias.value());
  return y;
}

Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias) {
  const OpScope op_scope("linear");
  const Index out = weight.extent(0);
  Shape shape = x.shape();
  shape[-1] = out;
  Tensor y(shape);
  LinearInput input(x.value(), out);
  if (input.is_rounded())
    linear_product(y.matrix(), input, weight.value().matrix(), bias.defined() ? bias.value().data() : nullptr);
  else
    linear_into(y.matrix(), x.value().matrix(), weight.value(), bias.value());
  if (!weight.wants_gradient()) input = {};
  return tape.record(std::move(y), {&x, &weight, &bias},
                     [x = std::move(input), w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                      db = bias.gradient()](const Tensor& dy) {
                       const Matrix dy_rows = dy.matrix();
                       linear_gradients(place_of(dx, dy_rows.rows, w.extent(1)), place_of(dw, w.extent(0), w.extent(1)),
                                        dy_rows, x, w.matrix());
                       if (db) {
                         const auto [target, beta] = db->target(1, dy_rows.cols);
                         if (beta == 0) kernels::fill(target.data, 0, target.cols);
                         add_column_sums(target.data, dy_rows);
                       }
                     });
}

void add_column_sums(Real* sum, Matrix y) {
  constexpr Index kRows = 64;
  const Index blocks = (y.rows + kRows - 1) / kRows;
  std::vector<Real> partial(static_cast<std::size_t>(blocks * y.cols), 0);
#pragma omp parallel for schedule(static)
  for (Index block = 0; block < blocks; ++block) {
    Real* const mine = partial.data() + block * y.cols;
    for (Index r = block * kRows; r < std::min(y.rows, (block + 1) * kRows); ++r)
      kernels::add_into(mine, y.row(r), y.cols);
  }
  for (Index c = 0; c < y.cols; ++c) {
    double total = 0;
    for (Index block = 0; block < blocks; ++block) total += partial[static_cast<std::size_t>(block * y.cols + c)];
    sum[c] += static_cast<Real>(total);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
