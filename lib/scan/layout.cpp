#include "scan/layout.h"

#include <algorithm>

namespace quipu {

const Stretch* Layout::block_of(Index lane, Index t) const {
  if (blocks.empty()) return nullptr;
  for (const Stretch& block : blocks[static_cast<std::size_t>(lane)])
    if (block.begin <= t && t < block.end) return &block;
  return nullptr;
}

std::vector<Span> Layout::spans(Index lane) const {
  const Index end = lane_length(lane);
  std::vector<Span> spans;
  Span span{0, end, false};
  if (!starts.empty()) {
    for (const Index start : starts[static_cast<std::size_t>(lane)]) {
      if (start >= end) break;
      if (start > span.begin) spans.push_back({span.begin, start, span.fresh});
      span = {start, end, true};
    }
  }
  if (span.begin < end) spans.push_back(span);
  return spans;
}

std::vector<Span> Layout::chunks(Index lane, Index chunk) const {
  std::vector<Span> pieces;
  for (const Span& span : spans(lane))
    for (Index begin = span.begin; begin < span.end; begin += chunk)
      pieces.push_back({begin, std::min(span.end, begin + chunk), span.fresh && begin == span.begin});
  return pieces;
}

}  // namespace quipu
