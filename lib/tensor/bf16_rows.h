#pragma once
#include "tensor/onednn.h"
#include "tensor/tensor.h"

namespace quipu::inline QUIPU_REAL_NS {

namespace kernels {
/// y = x rounded to the nearest bf16, ties to even; a NaN stays one.
void round_to_bf16(std::uint16_t* y, const Real* x, Index n);
}  // namespace kernels

/// A rounded copy of a matrix: a handle.
class RoundedMatrix {
 public:
  RoundedMatrix() = default;
  explicit RoundedMatrix(Matrix x);
  bool defined() const { return room_.defined(); }
  onednn::Bf16Matrix matrix() const { return {data(), rows_, cols_}; }

 private:
  std::uint16_t* data() const { return reinterpret_cast<std::uint16_t*>(room_.data()); }

  Index rows_ = 0, cols_ = 0;
  Tensor room_;  // two numbers or more in the place of one
};

}  // namespace quipu::inline QUIPU_REAL_NS
