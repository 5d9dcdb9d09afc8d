#include "base/flush_denormals.h"

#include <doctest/doctest.h>

#include <limits>

using namespace quipu;

TEST_CASE("denormal numbers count as 0 while the mode lasts, and no longer") {
  const volatile float smallest = std::numeric_limits<float>::min();
  const auto half = [&] { return smallest / 2; };
  CHECK(half() > 0);
#if defined(__SSE2__) || defined(__aarch64__)
  {
    const FlushDenormals flush;
    CHECK(half() == 0.0f);
    { const FlushDenormals again; }
    CHECK(half() == 0.0f);
  }
#endif
  CHECK(half() > 0);
}
