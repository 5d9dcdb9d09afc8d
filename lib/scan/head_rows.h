#pragma once
#include <vector>

#include "scan/layout.h"
#include "tensor/kernels.h"
#include "tensor/tensor.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The tokens of `span` of head `head` in lane `lane` of x [B,T,heads,width]; empty where x is undefined. `width` may
/// be 1 where x is [B,T,heads].
inline Matrix head_rows(const Tensor& x, Index heads, Index width, Index lane, Index head, const Span& span) {
  if (!x.defined()) return {nullptr, span.end - span.begin, 0, 0};
  const Index stride = heads * width;
  return {x.data() + (lane * x.extent(1) + span.begin) * stride + head * width, span.end - span.begin, width, stride};
}

/// Rows of padding in x [B,T,..], or [n B,T,..], set to `value`; nothing where x is undefined.
inline void fill_padding(const Tensor& x, const Layout& layout, Real value) {
  if (layout.lengths.empty() || !x.defined()) return;
  const Index row = x.count() / (x.extent(0) * layout.length);
  for (Index b = 0; b < x.extent(0); ++b) {
    const Index used = layout.lane_length(b % layout.batch);
    kernels::fill(x.data() + (b * layout.length + used) * row, value, (layout.length - used) * row);
  }
}

/// Every lane's documents cut into pieces of at most `chunk` tokens.
inline std::vector<std::vector<Span>> all_chunks(const Layout& layout, Index chunk) {
  std::vector<std::vector<Span>> chunks;
  for (Index b = 0; b < layout.batch; ++b) chunks.push_back(layout.chunks(b, chunk));
  return chunks;
}

}  // namespace quipu::inline QUIPU_REAL_NS
