#include "base/op_times.h"

#include <doctest/doctest.h>

#include <string_view>

#include "base/error.h"

using namespace quipu;

namespace {

void spin(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) continue;
}

const OpTimes::Line& line_of(const std::vector<OpTimes::Line>& lines, std::string_view op, bool backward = false) {
  for (const auto& line : lines)
    if (line.op == op && line.backward == backward) return line;
  FAIL("no line of " << op);
  return lines.front();
}

}  // namespace

TEST_CASE("op times: an inner operation's time is its own, and all lines add up to the whole") {
  const auto start = std::chrono::steady_clock::now();
  OpTimes times;
  {
    const OpScope outer("outer");
    spin(0.002);
    for (int i = 0; i < 2; ++i) {
      const OpScope inner("inner");
      const OpScope again("inner");  // the same call
      spin(0.01);
    }
    const OpScope back("outer", true);
    spin(0.001);
  }
  spin(0.001);
  const auto lines = times.lines();
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(lines.size() == 4);
  CHECK(line_of(lines, "inner").calls == 2);
  CHECK(line_of(lines, "inner").seconds >= 0.02);
  CHECK(line_of(lines, "outer").calls == 1);
  CHECK(line_of(lines, "outer").seconds >= 0.002);
  CHECK(line_of(lines, "outer", true).calls == 1);
  CHECK(line_of(lines, OpTimes::kOther).calls == 0);
  double sum = 0;
  for (const auto& line : lines) sum += line.seconds;
  CHECK(sum <= whole);
  CHECK(sum >= 0.024);
  for (std::size_t i = 1; i < lines.size(); ++i) CHECK(lines[i - 1].seconds >= lines[i].seconds);
}

TEST_CASE("op times: nothing is kept where nobody listens, and a restart forgets") {
  CHECK(OpScope::current() == nullptr);
  { const OpScope unheard("unheard"); }
  OpTimes times;
  CHECK(std::string_view(OpScope::current()) == OpTimes::kOther);
  {
    const OpScope heard("heard");
    CHECK(std::string_view(OpScope::current()) == "heard");
    CHECK_THROWS_AS(times.restart(), InternalError);
    CHECK_THROWS_AS(OpTimes{}, InternalError);
  }
  CHECK(times.lines().size() == 2);
  times.restart();
  CHECK(times.lines().size() == 1);
}
