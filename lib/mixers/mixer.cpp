#include "mixers/mixer.h"

#include <algorithm>
#include <cmath>

namespace quipu::inline QUIPU_REAL_NS {

Matrix Scratch::take(Index rows, Index cols) {
  if (used_ == pieces_.size()) pieces_.emplace_back();
  Tensor& piece = pieces_[used_++];
  if (!piece.defined() || piece.count() < rows * cols) piece = Tensor({rows * cols});
  return {piece.data(), rows, cols, cols};
}

Initializer embedding_beside_sinusoids(Index, Index dim) { return normal(1 / std::sqrt(static_cast<double>(dim))); }

Index checked_heads(const MixerSpec& spec, Index standard) {
  const Index heads = spec.heads > 0 ? spec.heads : standard;
  if (spec.dim % heads != 0)
    throw UsageError("--heads {}: does not divide the width {} (--dim); choose a divisor", heads, spec.dim);
  return heads;
}

Index expanded_head_width(const MixerSpec& spec, Index heads, double part, const char* option, Index step) {
  const double wanted = part * static_cast<double>(spec.dim) / static_cast<double>(heads);
  const Index width = std::max(step, static_cast<Index>(wanted) / step * step);
  if (static_cast<double>(width) != wanted)
    spec.options.note(fmt::format("{}={}: {} channels a head instead of {}", option, part, width, wanted));
  return width;
}

Index heads_of_size(const MixerSpec& spec, Index published, const char* option, const char* help) {
  Index standard = std::min(published, spec.dim);
  while (spec.dim % standard != 0) --standard;
  if (spec.heads > 0) standard = spec.dim / checked_heads(spec, 1);
  const Index size = spec.options.integer(option, standard, 1, help);
  if (size == standard && standard < published && spec.heads == 0)
    spec.options.note(fmt::format("{}={}: instead of {}, for the width {}", option, size, published, spec.dim));
  if (spec.dim % size != 0)
    throw UsageError("--set {}={}: does not divide the width {} (--dim)", option, size, spec.dim);
  return spec.heads > 0 ? spec.heads : spec.dim / size;
}

}  // namespace quipu::inline QUIPU_REAL_NS
