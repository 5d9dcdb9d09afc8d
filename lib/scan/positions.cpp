#include "scan/positions.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {

std::vector<std::int64_t> token_positions(const Layout& layout, const std::vector<std::int64_t>& before) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(layout.batch * layout.length), 0);
  for (Index b = 0; b < layout.batch; ++b)
    for (const Span& span : layout.spans(b)) {
      const std::int64_t first = span.fresh ? 0 : before[static_cast<std::size_t>(b)];
      for (Index t = span.begin; t < span.end; ++t)
        at[static_cast<std::size_t>(b * layout.length + t)] = first + t - span.begin;
    }
  return at;
}

void advance_positions(const Layout& layout, std::vector<std::int64_t>& position) {
  for (Index b = 0; b < layout.batch; ++b) {
    const std::vector<Span> spans = layout.spans(b);
    if (spans.empty()) continue;
    std::int64_t& tokens = position[static_cast<std::size_t>(b)];
    tokens = (spans.back().fresh ? 0 : tokens) + spans.back().end - spans.back().begin;
  }
}

void require_within(const char* what, const std::vector<std::int64_t>& positions, Index length) {
  if (positions.empty()) return;
  const std::int64_t last = *std::max_element(positions.begin(), positions.end());
  if (last >= length)
    throw InputError(
        "{}: the stream has at least {} tokens, and the model's length is {}; read documents of at most "
        "{} tokens, or train with a larger --seq-len",
        what, last + 1, length, length);
}

}  // namespace quipu
