#include "profile/verdict.h"

#include <doctest/doctest.h>

#include <vector>

using namespace quipu;

namespace {

ProfileRow row(Index length, double seconds, Index state) {
  ProfileRow r;
  r.length = length, r.seconds_per_token = seconds, r.state_bytes = state;
  return r;
}

}  // namespace

TEST_CASE("verdict: flat, growing and falling times; constant and growing states") {
  const std::vector<ProfileRow> flat{row(128, 1, 64), row(256, 5, 64), row(512, 1.24, 64)};
  CHECK(verdict_of(flat).time == Trend::flat);
  CHECK(verdict_of(flat).constant_state);
  CHECK(verdict_of(flat).time_ratio == doctest::Approx(1.24));
  const std::vector<ProfileRow> grows{row(128, 1, 64), row(512, 1.26, 256)};
  CHECK(verdict_of(grows).time == Trend::grows);
  CHECK_FALSE(verdict_of(grows).constant_state);
  CHECK(verdict_of(grows).from == 128);
  CHECK(verdict_of(grows).to == 512);
  CHECK(verdict_of(std::vector{row(128, 2, 64), row(512, 1, 64)}).time == Trend::falls);
  CHECK(verdict_of(std::vector{row(128, 2, 64)}).time == Trend::one_length);
}

TEST_CASE("verdict: lengths that were not measured do not count") {
  std::vector<ProfileRow> rows{row(128, 1, 64), row(256, 1, 64), row(512, 0, 0)};
  rows[2].note = "too long";
  CHECK(verdict_of(rows).to == 256);
  CHECK(verdict_of(rows).constant_state);
  CHECK(verdict_of(std::span(rows).last(1)).from == 0);
}
