#include "scan/segment_plan.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace quipu;

namespace {

/// Names of the rows that picks mean: of the cache C0.., of the open segments O0.., of the batch T0.. (each lane by
/// itself, the lane in front).
struct Names {
  Index lanes, memory, segment, length;

  std::string of(Index pick, bool with_cache) const {
    if (pick < 0) return "-";
    const auto name = [&](const char* part, Index rows) {
      return std::to_string(pick / rows) + part + std::to_string(pick % rows);
    };
    const Index cache = with_cache ? lanes * memory : 0;
    if (pick < cache) return name("C", memory);
    pick -= cache;
    if (pick < lanes * segment) return name("O", segment);
    pick -= lanes * segment;
    return name("T", length);
  }
  std::string list(const std::vector<Index>& picks, Index begin, Index end, bool with_cache) const {
    std::string text;
    for (Index i = begin; i < end; ++i)
      text += (i > begin ? " " : "") + of(picks[static_cast<std::size_t>(i)], with_cache);
    return text;
  }
};

}  // namespace

TEST_CASE("segment plan: segments go on, close and start anew") {
  const Index memory = 3, segment = 4;
  // Lane 0 has an open row and two cached ones; lane 1 starts with a document and has another at token 6.
  const Layout layout{.batch = 2, .length = 9, .lengths = {8, 9}, .starts = {{}, {0, 6}}};
  const SegmentPlan plan(layout, segment, memory, {1, 2}, {2, 3});
  const Names names{2, memory, segment, 9};
  const auto unit = [&](std::size_t i) {
    const RelativeUnit& u = plan.units[i];
    return names.list(plan.past, u.past.begin, u.past.end, true) + " | " +
           names.list(plan.own, u.own.begin, u.own.end, false) + " | " + std::to_string(u.queries) + " to " +
           std::to_string(u.out);
  };
  REQUIRE(plan.units.size() == 6);
  CHECK(unit(0) == "0C0 0C1 | 0O0 0T0 0T1 0T2 | 3 to 0");
  CHECK(unit(1) == "0T0 0T1 0T2 | 0T3 0T4 0T5 0T6 | 4 to 3");
  CHECK(unit(2) == "0T4 0T5 0T6 | 0T7 | 1 to 7");
  CHECK(unit(3) == " | 1T0 1T1 1T2 1T3 | 4 to 9");
  CHECK(unit(4) == "1T1 1T2 1T3 | 1T4 1T5 | 2 to 13");
  CHECK(unit(5) == " | 1T6 1T7 1T8 | 3 to 15");
  CHECK(names.list(plan.cache, 0, 6, true) == "0T4 0T5 0T6 - - -");
  CHECK(names.list(plan.open, 0, 8, false) == "0T7 - - - 1T6 1T7 1T8 -");
  CHECK(plan.open_rows == std::vector<std::int64_t>{1, 3});
  CHECK(plan.cached_rows == std::vector<std::int64_t>{3, 0});
}

TEST_CASE("segment plan: a memory longer than a segment, and one of no rows") {
  const Layout layout = Layout::plain(1, 5);
  const Names names{1, 5, 2, 5};
  const SegmentPlan longer(layout, 2, 5, {0}, {4});
  REQUIRE(longer.units.size() == 3);
  CHECK(longer.own.empty());
  const auto past = [&](std::size_t i) {
    return names.list(longer.past, longer.units[i].past.begin, longer.units[i].past.end, true);
  };
  CHECK(past(0) == "0C0 0C1 0C2 0C3");
  CHECK(past(1) == "0C1 0C2 0C3 0T0 0T1");
  CHECK(past(2) == "0C3 0T0 0T1 0T2 0T3");
  CHECK(names.list(longer.cache, 0, 5, true) == "0C3 0T0 0T1 0T2 0T3");
  CHECK(names.list(longer.open, 0, 2, false) == "0T4 -");

  const SegmentPlan none(layout, 2, 0, {1}, {0});
  CHECK(none.past.empty());
  CHECK(none.cache.empty());
  CHECK(none.open_rows == std::vector<std::int64_t>{0});
  CHECK(none.units.size() == 3);
}

TEST_CASE("segment plan: blocks are counted from their segment's first row, and end with it") {
  const Layout layout{.batch = 1, .length = 6, .lengths = {}, .starts = {}, .blocks = {{{1, 4}}}};
  const SegmentPlan plan(layout, 4, 4, {1}, {0});
  REQUIRE(plan.units.size() == 2);
  REQUIRE(plan.units[0].blocks.size() == 1);
  CHECK(plan.units[0].blocks[0].begin == 2);
  CHECK(plan.units[0].blocks[0].end == 4);
  REQUIRE(plan.units[1].blocks.size() == 1);
  CHECK(plan.units[1].blocks[0].begin == 0);
  CHECK(plan.units[1].blocks[0].end == 1);
}

TEST_CASE("segment plan: a lane of padding alone keeps what it has") {
  const Layout layout{.batch = 2, .length = 3, .lengths = {0, 3}, .starts = {}};
  const SegmentPlan plan(layout, 4, 2, {3, 0}, {1, 0});
  const Names names{2, 2, 4, 3};
  CHECK(plan.own.empty());
  CHECK(plan.units.size() == 1);
  CHECK(names.list(plan.cache, 0, 4, true) == "0C0 - - -");
  CHECK(names.list(plan.open, 0, 8, false) == "0O0 0O1 0O2 - 1T0 1T1 1T2 -");
  CHECK(plan.open_rows == std::vector<std::int64_t>{3, 3});
}
