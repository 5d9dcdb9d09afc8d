#include "profile/spread.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"

using namespace quipu;

TEST_CASE("spread: quartiles are interpolated, in whatever order the values come") {
  const std::vector<double> values{4, 1, 3, 2};
  const Spread s = spread_of(values);
  CHECK(s.low == doctest::Approx(1.75));
  CHECK(s.median == doctest::Approx(2.5));
  CHECK(s.high == doctest::Approx(3.25));
  CHECK(s.count == 4);
  CHECK(s.scaled(2).high == doctest::Approx(6.5));
  const std::vector<double> one{7};
  CHECK(spread_of(one).low == 7);
  CHECK(spread_of(one).high == 7);
  CHECK_THROWS_AS(spread_of({}), InternalError);
}

TEST_CASE("spread: it is settled once the quartiles are close for their number, and not before five values") {
  CHECK_FALSE(is_settled({1, 1, 1, 4}));
  CHECK(is_settled({1, 1, 1, 5}));
  CHECK_FALSE(is_settled({0.95, 1, 1.05, 99}));  // 0.1 over 9.9
  CHECK(is_settled({0.95, 1, 1.05, 101}));
}
