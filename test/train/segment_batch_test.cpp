#include "train/segment_batch.h"

#include <doctest/doctest.h>

using namespace quipu;

namespace {

Segment segment(Index length, bool fresh = true) { return {0, length, 0, 0, 0, fresh, false, std::nullopt}; }

}  // namespace

TEST_CASE("segments fill lanes in their order and never overlap") {
  const std::vector<Segment> segments = {segment(5, false), segment(3), segment(0), segment(7), segment(2), segment(4)};
  const Packing packing = pack_segments(segments, 3);
  CHECK(packing.places.size() == segments.size());
  CHECK(packing.places[0].lane == 0);
  CHECK(packing.places[0].column == 0);
  std::vector<Index> filled(static_cast<std::size_t>(packing.layout.batch), 0);
  Index lane = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    CHECK(packing.places[i].lane >= lane);
    lane = packing.places[i].lane;
    CHECK(packing.places[i].column == filled[static_cast<std::size_t>(lane)]);
    filled[static_cast<std::size_t>(lane)] += segments[i].length;
  }
  CHECK(filled == packing.layout.lengths);
  CHECK(packing.layout.length == 7);
  CHECK(packing.layout.starts[0].empty());
  CHECK(packing.layout.starts.back().front() == 0);
}

TEST_CASE("one long segment is one lane") {
  const std::vector<Segment> segments = {segment(100)};
  const Packing packing = pack_segments(segments, 8);
  CHECK(packing.layout.batch == 1);
  CHECK(packing.layout.length == 100);
}
