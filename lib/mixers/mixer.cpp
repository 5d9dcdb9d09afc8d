#include "mixers/mixer.h"

#include <algorithm>

namespace quipu::inline QUIPU_REAL_NS {

Matrix Scratch::take(Index rows, Index cols) {
  if (used_ == pieces_.size()) pieces_.emplace_back();
  Tensor& piece = pieces_[used_++];
  if (!piece.defined() || piece.count() < rows * cols) piece = Tensor({rows * cols});
  return {piece.data(), rows, cols, cols};
}

Index checked_heads(const MixerSpec& spec, Index standard) {
  const Index heads = spec.heads > 0 ? spec.heads : standard;
  if (spec.dim % heads != 0)
    throw UsageError("--heads {}: does not divide the width {} (--dim); choose a divisor", heads, spec.dim);
  return heads;
}

}  // namespace quipu::inline QUIPU_REAL_NS
