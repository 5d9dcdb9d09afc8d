#include "profile/ceiling.h"

#include <doctest/doctest.h>

using namespace quipu;

TEST_CASE("ceiling: the slower of products and memory bounds the work") {
  const Ceiling c{1, 100, 10};
  CHECK(c.seconds(200, 10) == 2);
  CHECK_FALSE(c.memory_bound(200, 10));
  CHECK(c.seconds(200, 30) == 3);
  CHECK(c.memory_bound(200, 30));
}
