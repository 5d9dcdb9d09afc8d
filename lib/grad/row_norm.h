#pragma once
#include "grad/tape.h"
#include "tensor/norm_rows.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a row is divided by, after its mean is taken off (layer) or not.
enum class NormKind { layer, rms, l2 };

/// Rows of one normalisation: `width` elements each, `groups` of them a token, each with its own weights.
struct RowNorm {
  NormKind kind;
  double eps;
  Index width;
  Index groups;

  /// For x [..,V] and weights of G*V elements (undefined: one group). Throws ShapeError naming `what`.
  RowNorm(const char* what, NormKind kind, double eps, const Shape& x, const Tensor& weight, const Tensor& bias);

  kernels::RowScale scale_of(const Real* x) const;
  /// The sums that backward takes off, turned into means as the kind wants.
  kernels::RowSums means(kernels::RowSums sums) const;
  /// The weights of row r; null where there are none.
  const Real* part(const Tensor& weight, Index r) const {
    return weight.defined() ? weight.data() + r % groups * width : nullptr;
  }
};

/// The scales of all rows, as a tensor of pairs for the tape to keep.
struct RowScales {
  Tensor pairs;
  explicit RowScales(Index rows) : pairs({rows, 2}) {}
  void set(Index r, kernels::RowScale scale) const {
    pairs.data()[2 * r] = scale.mean;
    pairs.data()[2 * r + 1] = scale.inverse;
  }
  kernels::RowScale at(Index r) const { return {pairs.data()[2 * r], pairs.data()[2 * r + 1]}; }
};

/// Sums gradients of weights over blocks of tokens: each block has a row of its own, and `finish` adds the rows up in
/// order, in double.
class WeightSums {
 public:
  /// Columns = elements of the weight; nothing is allocated where neither slot is there.
  WeightSums(std::shared_ptr<Gradient> dweight, std::shared_ptr<Gradient> dbias, Index blocks, Index columns);

  bool wanted() const { return partial_.defined(); }
  /// Zeroes the rows of a block, for its thread.
  void clear(Index block) const;
  Real* weight(Index block) const { return partial_.data() + block * rows_ * columns_; }
  /// Null where no gradient of a bias is wanted.
  Real* bias(Index block) const { return dbias_ ? weight(block) + columns_ : nullptr; }
  void finish() const;

 private:
  void finish(Gradient& slot, Index row) const;

  std::shared_ptr<Gradient> dweight_, dbias_;
  Index blocks_, columns_, rows_;
  Tensor partial_;
};

/// Tokens in one block of a loop over rows.
inline constexpr Index kTokenBlock = 32;

}  // namespace quipu::inline QUIPU_REAL_NS
