#include "train/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "golden.h"

namespace quipu {
namespace {

/// Compares every step with a row of the golden file, whose steps run from 0 to `steps`.
void check_against(const std::string& name, const ScheduleOptions& options) {
  INFO(name);
  check_schedule(options);
  const GoldenTensor want = GoldenFile("optim").at("schedules").tensor(name);
  REQUIRE(want.values.size() == static_cast<std::size_t>(options.steps) + 1);
  for (Index step = 0; step <= options.steps; ++step) {
    INFO("step ", step);
    CHECK(std::abs(learning_rate(options, step) - want.values[static_cast<std::size_t>(step)]) < 1e-10 * options.peak);
  }
}

ScheduleOptions golden_options(Schedule schedule) {
  const GoldenCase golden = GoldenFile("optim").at("schedules");
  ScheduleOptions options;
  options.schedule = schedule;
  options.peak = golden.number("peak");
  options.warmup = static_cast<Index>(golden.number("warmup"));
  options.steps = static_cast<Index>(golden.number("steps"));
  return options;
}

TEST_CASE("schedule: golden cosine") {
  ScheduleOptions options = golden_options(Schedule::kCosine);
  options.min = GoldenFile("optim").at("schedules").number("min");
  check_against("linear_warmup_cosine_nanogpt_like", options);
  options.warmup = 0;
  check_against("torch_cosine_annealing", options);

  ScheduleOptions from_zero = golden_options(Schedule::kCosine);
  from_zero.warmup_from_zero = true;
  check_against("hf_cosine_with_warmup", from_zero);
}

TEST_CASE("schedule: golden linear and inverse-sqrt") {
  ScheduleOptions options = golden_options(Schedule::kLinear);
  options.warmup_from_zero = true;
  check_against("linear_warmup_linear_decay", options);

  options.schedule = Schedule::kInverseSqrt;
  options.warmup_start = 1e-7;
  check_against("fairseq_inverse_sqrt", options);
}

TEST_CASE("schedule: constant stays, inverse-sqrt keeps its floor, neither needs the steps") {
  ScheduleOptions options{.schedule = Schedule::kConstant, .peak = 0.5, .warmup = 4};
  check_schedule(options);
  CHECK(learning_rate(options, 0) == 0.125);
  CHECK(learning_rate(options, 3) == 0.5);
  CHECK(learning_rate(options, 1'000'000'000) == 0.5);

  options.schedule = Schedule::kInverseSqrt;
  options.min = 0.1;
  check_schedule(options);
  CHECK(learning_rate(options, 16) == doctest::Approx(0.25));
  CHECK(learning_rate(options, 1'000'000) == 0.1);
  options.warmup = 0;
  CHECK(learning_rate(options, 0) == 0.5);
  CHECK(learning_rate(options, 1) == 0.5);
}

TEST_CASE("schedule: cosine restarts") {
  ScheduleOptions options{.schedule = Schedule::kCosineRestarts, .peak = 1, .min = 0.2, .warmup = 3, .steps = 73};
  check_schedule(options);
  const auto rate = [&](Index step) { return learning_rate(options, step); };
  SUBCASE("three cycles of 10, 20 and 40 steps fill the run") {
    for (const Index start : {3, 13, 33}) CHECK(rate(start) == doctest::Approx(1));
    for (const Index middle : {8, 23, 53}) CHECK(rate(middle) == doctest::Approx(0.6));
    CHECK(rate(12) < 0.23);
    CHECK(rate(72) < 0.21);
    CHECK(rate(73) == 0.2);
  }
  SUBCASE("a period and a multiplier of one's own") {
    options.restart_period = 7;
    options.restart_multiplier = 1;
    for (Index step = 3; step + 7 < options.steps; ++step) CHECK(rate(step) == doctest::Approx(rate(step + 7)));
    CHECK(rate(10) == doctest::Approx(1));
  }
}

TEST_CASE("schedule: wsd stays, then falls in its last share") {
  ScheduleOptions options{
      .schedule = Schedule::kWsd, .peak = 1, .min = 0.5, .warmup = 5, .steps = 100, .decay_share = 0.2};
  check_schedule(options);
  CHECK(learning_rate(options, 5) == 1);
  CHECK(learning_rate(options, 80) == 1);
  CHECK(learning_rate(options, 90) == doctest::Approx(0.75));
  CHECK(learning_rate(options, 100) == 0.5);
  options.decay_share = 1;  // no longer than what the warm-up leaves
  CHECK(learning_rate(options, 5) == 1);
  CHECK(learning_rate(options, 6) < 1);
  options.decay_share = 0;
  CHECK(learning_rate(options, 99) == 1);
}

TEST_CASE("schedule: one table names them") {
  for (const ScheduleEntry& entry : schedule_table()) {
    CHECK(schedule_from_name(entry.name) == entry.schedule);
    CHECK(schedule_name(entry.schedule) == entry.name);
    ScheduleOptions options{.schedule = entry.schedule, .peak = 1, .min = 0.01, .warmup = 7, .steps = 50};
    for (Index step = 0; step < 60; ++step) {
      CHECK(learning_rate(options, step) > 0);
      CHECK(learning_rate(options, step) <= 1);
    }
  }
  CHECK_THROWS_WITH_AS(schedule_from_name("cosin"),
                       "schedule: no schedule is called 'cosin'; choose one of constant, linear, cosine, "
                       "cosine-restarts, inverse-sqrt, wsd",
                       UsageError);
}

TEST_CASE("schedule: options that make no schedule are refused") {
  const ScheduleOptions good{.peak = 0.1, .warmup = 5, .steps = 50};
  CHECK_NOTHROW(check_schedule(good));
  const auto refused = [&](auto change) {
    ScheduleOptions options = good;
    change(options);
    CHECK_THROWS_AS(check_schedule(options), UsageError);
  };
  refused([](ScheduleOptions& o) { o.peak = -1; });
  refused([](ScheduleOptions& o) { o.peak = std::nan(""); });
  refused([](ScheduleOptions& o) { o.min = 0.2; });
  refused([](ScheduleOptions& o) { o.warmup = 50; });
  refused([](ScheduleOptions& o) { o.warmup = -1; });
  refused([](ScheduleOptions& o) { o.warmup_start = 1; });
  refused([](ScheduleOptions& o) { o.restart_period = -3; });
  refused([](ScheduleOptions& o) { o.restart_multiplier = 0.5; });
  refused([](ScheduleOptions& o) { o.decay_share = 1.5; });
}

}  // namespace
}  // namespace quipu
