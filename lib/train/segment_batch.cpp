#include "train/segment_batch.h"

#include <algorithm>

namespace quipu {

Packing pack_segments(std::span<const Segment> segments, Index lanes) {
  Index total = 0, longest = 1;
  for (const Segment& segment : segments) {
    total += segment.length;
    longest = std::max(longest, segment.length);
  }
  const Index room = std::max(longest, (total + lanes - 1) / lanes);

  Packing packing;
  std::vector<Index>& lengths = packing.layout.lengths;
  std::vector<std::vector<Index>>& starts = packing.layout.starts;
  lengths = {0};
  starts = {{}};
  for (const Segment& segment : segments) {
    if (lengths.back() + segment.length > room) {
      lengths.push_back(0);
      starts.emplace_back();
    }
    packing.places.push_back({static_cast<Index>(lengths.size()) - 1, lengths.back()});
    if (segment.fresh && segment.length > 0) starts.back().push_back(lengths.back());
    lengths.back() += segment.length;
  }
  packing.layout.batch = static_cast<Index>(lengths.size());
  packing.layout.length = *std::max_element(lengths.begin(), lengths.end());
  return packing;
}

}  // namespace quipu
