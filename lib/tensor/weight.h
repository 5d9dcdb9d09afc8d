#pragma once
#include "tensor/packed_matrix.h"
#include "tensor/tensor.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The matrix [out,in] of a linear map, in any number format: a handle.
class Weight {
 public:
  Weight() = default;
  Weight(Tensor floats) : floats_(std::move(floats)) {}        // NOLINT: a tensor is a weight in full precision
  Weight(PackedMatrix packed) : packed_(std::move(packed)) {}  // NOLINT

  bool defined() const { return floats_.defined() || packed_.defined(); }
  bool is_packed() const { return packed_.defined(); }
  Index out() const { return is_packed() ? packed_.rows() : floats_.extent(0); }
  Index in() const { return is_packed() ? packed_.cols() : floats_.extent(1); }
  const Tensor& floats() const { return floats_; }
  const PackedMatrix& packed() const { return packed_; }
  /// Outputs [begin, end) alone.
  Weight rows(Index begin, Index end) const;

 private:
  Tensor floats_;
  PackedMatrix packed_;
};

/// y = x W^T + b.  x: [n,in];  b: [out] or null;  y: [n,out], written in full.
/// A row or a few are multiplied with the weight as it is stored, which is read once; for more, panels of it are
/// expanded in the cache, one product each. Rows of W are shared out among threads in fixed blocks, where there is
/// enough to share. Throws ShapeError where the widths disagree.
void multiply_weight(Matrix y, Matrix x, const Weight& weight, const Real* bias);

}  // namespace quipu::inline QUIPU_REAL_NS
