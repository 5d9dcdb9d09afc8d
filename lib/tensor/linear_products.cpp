#include "tensor/linear_products.h"

#include <algorithm>
#include <atomic>

#include "tensor/blas.h"
#include "tensor/onednn.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

std::atomic<Precision> chosen = Precision::f32;

constexpr Index kLeastWork = Index{1} << 18;  // multiply-adds that are worth rounding for

}  // namespace

void set_linear_precision(Precision precision) {
  if (precision == Precision::bf16 && !onednn::is_built_in())
    throw UsageError("--precision: bf16 needs oneDNN, which was not there when this was built (libdnnl-dev)");
  if (precision == Precision::bf16 && !onednn::has_bf16())
    throw UsageError("--precision: this CPU has no bf16 instructions; use f32");
  chosen = precision;
}

Precision linear_precision() { return chosen; }

LinearInput::LinearInput(Matrix x, Index out) {
  if (chosen.load(std::memory_order_relaxed) == Precision::bf16 && x.rows * x.cols * out >= kLeastWork)
    rounded_ = RoundedMatrix(x);
  else
    floats_ = x;
}

void linear_product(Matrix y, const LinearInput& x, Matrix weight, const Real* bias) {
  if (x.is_rounded()) return onednn::multiply_bt(y, x.rounded().matrix(), RoundedMatrix(weight).matrix(), bias);
  if (bias != nullptr)
    for (Index n = 0; n < y.rows; ++n) std::copy_n(bias, y.cols, y.row(n));
  blas::multiply_bt(y, x.floats(), weight, bias != nullptr ? Real{1} : Real{0});
}

void linear_gradients(const std::optional<GradientTarget>& dx, const std::optional<GradientTarget>& dw, Matrix dy,
                      const LinearInput& x, Matrix weight) {
  // Without dW nothing was kept of x; then dy decides.
  if (const LinearInput rounded(dy, weight.cols); rounded.is_rounded()) {
    const onednn::Bf16Matrix g = rounded.rounded().matrix();
    if (dx) onednn::multiply(dx->to, g, false, RoundedMatrix(weight).matrix(), false, dx->add);
    if (dw) onednn::multiply(dw->to, g, true, x.rounded().matrix(), false, dw->add);
    return;
  }
  if (dx) blas::multiply(dx->to, dy, weight, dx->add ? Real{1} : Real{0});
  if (dw) blas::multiply_at(dw->to, dy, x.floats(), dw->add ? Real{1} : Real{0});
}

}  // namespace quipu::inline QUIPU_REAL_NS
