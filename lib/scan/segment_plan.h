#pragma once
#include <cstdint>
#include <vector>

#include "scan/relative_attention.h"

namespace quipu::inline QUIPU_REAL_NS {

/// How a batch of rows falls into segments that see the `memory` rows before them. A document's segments have `segment`
/// rows each, however it is cut into batches: the last one stays open, and is kept whole, beside the cached rows before
/// it. Picks are rows of the arrays named, one behind another (-1: none).
struct SegmentPlan {
  std::vector<RelativeUnit> units;
  std::vector<Index> own;    ///< of [open; batch]: the units' own rows; empty: they are the rows of the batch
  std::vector<Index> past;   ///< of [cache; open; batch]: the units' cached rows
  std::vector<Index> open;   ///< of [open; batch]: the open segments afterwards, [B,segment]
  std::vector<Index> cache;  ///< of [cache; open; batch]: the rows before them, [B,memory]
  std::vector<std::int64_t> open_rows, cached_rows;  ///< of each lane, how many of these hold something

  /// cache: [B,memory], open: [B,segment], of which each lane has the first `cached_rows` and `open_rows`; batch:
  /// [B,T].
  SegmentPlan(const Layout& layout, Index segment, Index memory, std::vector<std::int64_t> open_rows,
              std::vector<std::int64_t> cached_rows);

 private:
  struct Timeline;
  void plan_lane(const Layout& layout, Index lane, Index segment, Index memory, bool gathered);
};

}  // namespace quipu::inline QUIPU_REAL_NS
