#pragma once
#include <optional>

#include "tensor/bf16_rows.h"

/// The three products of a linear layer y = x W^T + b, with inputs as they are or rounded to bf16.
namespace quipu::inline QUIPU_REAL_NS {

/// Of the inputs of linear layers' products; sums are floats in both, and everything else computes in floats.
enum class Precision { f32, bf16 };

/// For the whole process; call before work starts. Throws UsageError for bf16 where oneDNN is not built in or this CPU
/// has no instructions for it.
void set_linear_precision(Precision precision);
Precision linear_precision();

/// x [n,in] as the products of a layer with `out` outputs take it: itself, or a rounded copy where the process was told
/// so and the products are large enough to gain. What a layer keeps for its backward products.
class LinearInput {
 public:
  LinearInput() = default;
  LinearInput(const Tensor& x, Index out) : LinearInput(x.matrix(), out) {
    if (!is_rounded()) owner_ = x;
  }
  /// Somebody else keeps x alive.
  LinearInput(Matrix x, Index out);

  bool is_rounded() const { return rounded_.defined(); }
  Matrix floats() const { return floats_; }
  const RoundedMatrix& rounded() const { return rounded_; }

 private:
  Tensor owner_;
  Matrix floats_;
  RoundedMatrix rounded_;
};

/// y = x W^T + b.  x: [n,in];  W: [out,in];  b: [out] or null;  y: [n,out].
void linear_product(Matrix y, const LinearInput& x, Matrix weight, const Real* bias);

/// A gradient's place, and whether it is added to what is there.
struct GradientTarget {
  Matrix to;
  bool add = false;
};

/// dx = dy W and dW = dy^T x, where asked for.  dy: [n,out];  x: [n,in], used for dW alone.
void linear_gradients(const std::optional<GradientTarget>& dx, const std::optional<GradientTarget>& dw, Matrix dy,
                      const LinearInput& x, Matrix weight);

}  // namespace quipu::inline QUIPU_REAL_NS
