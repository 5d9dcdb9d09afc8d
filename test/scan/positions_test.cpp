#include "scan/positions.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace quipu;

TEST_CASE("positions count within documents, over segments and without padding") {
  const Layout layout{3, 5, {5, 3, 0}, {{1, 4}, {}, {}}};
  std::vector<std::int64_t> position{7, 2, 9};
  const std::vector<std::int64_t> wanted{7, 0, 1, 2, 0, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0};
  CHECK(token_positions(layout, position) == wanted);
  advance_positions(layout, position);
  CHECK(position == std::vector<std::int64_t>{1, 5, 9});
}

TEST_CASE("a stream beyond a fixed length is an error that names both") {
  CHECK_NOTHROW(require_within("synthesizer", {0, 3, 15}, 16));
  try {
    require_within("synthesizer", {0, 16, 3}, 16);
    FAIL("no error");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.find("17 tokens") != std::string::npos);
    CHECK(text.find("16") != std::string::npos);
  }
}
