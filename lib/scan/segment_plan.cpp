#include "scan/segment_plan.h"

#include <algorithm>

namespace quipu::inline QUIPU_REAL_NS {

/// The rows of one document in order: those in the cache, those of the open segment, those of the batch.
struct SegmentPlan::Timeline {
  Index cached, open;              ///< how many of each
  Index cache_row, open_row, row;  ///< the first of each, in [cache; open; batch]

  Index at(Index i) const {
    if (i < cached) return cache_row + i;
    return i < cached + open ? open_row + i - cached : row + i - cached - open;
  }
};

SegmentPlan::SegmentPlan(const Layout& layout, Index segment, Index memory, std::vector<std::int64_t> opened,
                         std::vector<std::int64_t> cached)
    : open_rows(std::move(opened)), cached_rows(std::move(cached)) {
  bool gathered = false;
  for (Index lane = 0; lane < layout.batch; ++lane) {
    const std::vector<Span> spans = layout.spans(lane);
    gathered = gathered || (!spans.empty() && !spans[0].fresh && open_rows[static_cast<std::size_t>(lane)] > 0);
  }
  for (Index lane = 0; lane < layout.batch; ++lane) plan_lane(layout, lane, segment, memory, gathered);
}

void SegmentPlan::plan_lane(const Layout& layout, Index lane, Index segment, Index memory, bool gathered) {
  std::int64_t &filled = open_rows[static_cast<std::size_t>(lane)], &held = cached_rows[static_cast<std::size_t>(lane)];
  const Index before_open = layout.batch * memory, before_batch = before_open + layout.batch * segment;
  Timeline line{held, filled, lane * memory, before_open + lane * segment, before_batch + lane * layout.length};
  Index begin = held;  // of the open segment, in the timeline
  for (const Span& span : layout.spans(lane)) {
    if (span.fresh) {
      begin = filled = 0;
      line.cached = line.open = 0;
    }
    line.row = before_batch + lane * layout.length + span.begin;
    Index listed = 0, shift = 0;  // of the timeline: the end of what stands in `past`, and by how much it is ahead
    for (Index t = span.begin; t < span.end;) {
      RelativeUnit unit{.lane = lane, .queries = std::min(segment - filled, span.end - t)};
      unit.out = lane * layout.length + t;
      const Index first = std::max<Index>(0, begin - memory), rows = filled + unit.queries;
      if (listed <= first) listed = first, shift = static_cast<Index>(past.size()) - first;
      for (; listed < begin; ++listed) past.push_back(line.at(listed));
      unit.past = {first + shift, begin + shift};
      unit.own = {unit.out, unit.out + unit.queries};
      if (gathered) {
        unit.own = {static_cast<Index>(own.size()), static_cast<Index>(own.size()) + rows};
        for (Index i = begin; i < begin + rows; ++i) own.push_back(line.at(i) - before_open);
      }
      if (!layout.blocks.empty())
        for (const Stretch& block : layout.blocks[static_cast<std::size_t>(lane)])
          if (const Stretch seen{std::max(block.begin, t), std::min(block.end, t + unit.queries)};
              seen.begin < seen.end)
            unit.blocks.push_back({seen.begin - t + filled, seen.end - t + filled});
      t += unit.queries;
      filled = rows == segment ? 0 : rows;
      begin += rows == segment ? segment : 0;
      units.push_back(std::move(unit));
    }
  }
  held = std::min(begin, memory);
  for (Index i = 0; i < memory; ++i) cache.push_back(i < held ? line.at(begin - held + i) : -1);
  for (Index i = 0; i < segment; ++i) open.push_back(i < filled ? line.at(begin + i) - before_open : -1);
}

}  // namespace quipu::inline QUIPU_REAL_NS
