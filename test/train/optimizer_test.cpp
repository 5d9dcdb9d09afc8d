#include "train/optimizer.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "golden.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr double kTolerance = sizeof(Real) == 8 ? 1e-10 : 2e-6;

double relative_distance(const std::vector<Real>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / norm);
}

/// The tensors param0 and param1 of a case laid end to end, as the flat arrays have them.
std::vector<double> flat(const GoldenCase& golden, const std::string& first, const std::string& second) {
  std::vector<double> out = golden.tensor(first).values;
  const std::vector<double> more = golden.tensor(second).values;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}
std::vector<double> flat(const GoldenCase& golden, const std::string& leaf) {
  return flat(golden, "param0/" + leaf, "param1/" + leaf);
}
std::vector<Real> rounded(const std::vector<double>& values) { return {values.begin(), values.end()}; }

OptimizerOptions golden_options(const GoldenCase& golden, OptimizerKind kind) {
  OptimizerOptions options{.kind = kind, .weight_decay = golden.number_or("weight_decay", 0)};
  options.beta1 = golden.number(kind == OptimizerKind::kNag ? "momentum" : "beta1");
  if (kind != OptimizerKind::kNag) {
    options.beta2 = golden.number("beta2");
    options.eps = golden.number("eps");
  }
  return options;
}

/// Five steps; the parameters after each and the state after the last are the golden ones.
void check_steps(const std::string& name, OptimizerOptions options, bool second_decays,
                 const std::vector<std::string>& state_names) {
  INFO(name);
  const GoldenCase golden = GoldenFile("optim").at(name);
  const std::vector<double> rates =
      golden.has_attribute("lrs") ? golden.numbers("lrs") : std::vector(5, golden.number("lr"));
  std::vector<Real> params = rounded(flat(golden, "init"));
  Optimizer optimizer(options, {{.begin = 0, .end = 12}, {.begin = 12, .end = 17, .decay = second_decays}});
  for (std::size_t i = 0; i < 5; ++i) {
    INFO("step ", i + 1);
    optimizer.step(params, rounded(flat(golden, "grad_step" + std::to_string(i + 1))), rates[i]);
    CHECK(relative_distance(params, flat(golden, "after_step" + std::to_string(i + 1))) < kTolerance);
  }
  CHECK(optimizer.steps_taken() == 5);
  const auto state = optimizer.state();
  REQUIRE(state.size() == state_names.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    CHECK(relative_distance({state[i].values.begin(), state[i].values.end()}, flat(golden, state_names[i])) <
          kTolerance);
  }
}

const std::vector<std::string> kAdamState = {"state_exp_avg", "state_exp_avg_sq"};

TEST_CASE("optimizer: golden adamw, with one rate and with a rate per step") {
  for (const char* name : {"adamw", "adamw_varying_lr"}) {
    check_steps(name, golden_options(GoldenFile("optim").at(name), OptimizerKind::kAdamW), true, kAdamState);
  }
}

TEST_CASE("optimizer: golden adamw with a group that does not decay") {
  OptimizerOptions options = golden_options(GoldenFile("optim").at("adamw_groups"), OptimizerKind::kAdamW);
  options.weight_decay = 0.1;
  check_steps("adamw_groups", options, false, kAdamState);
}

TEST_CASE("optimizer: golden adam with L2 decay, and Nesterov's momentum") {
  const GoldenFile file("optim");
  check_steps("adam_l2", golden_options(file.at("adam_l2"), OptimizerKind::kAdam), true, kAdamState);
  check_steps("sgd_nesterov", golden_options(file.at("sgd_nesterov"), OptimizerKind::kNag), true,
              {"state_momentum_buffer"});
}

TEST_CASE("optimizer: golden clipping by the norm of all gradients") {
  const GoldenCase golden = GoldenFile("optim").at("clip_grad_norm");
  std::vector<Real> grads = rounded(flat(golden, "grad0", "grad1"));
  const GradientNorm norm = grad_norm(grads);
  CHECK(std::abs(norm.norm - golden.number("total_norm")) < kTolerance * norm.norm);
  CHECK(norm.first_bad == -1);
  const double scale = clip_coefficient(norm.norm, golden.number("max_norm"));
  const std::vector<double> clipped = flat(golden, "clipped0", "clipped1");

  // The scale is applied inside the step: momentum 0 and rate 1 subtract the scaled gradient itself.
  std::vector<Real> params(grads.size());
  Optimizer optimizer({.kind = OptimizerKind::kNag, .beta1 = 0, .weight_decay = 0}, {{.begin = 0, .end = 17}});
  optimizer.step(params, grads, -1, scale);
  CHECK(relative_distance(params, clipped) < kTolerance);
  CHECK(clip_coefficient(0.5, 1) == 1);
  CHECK(clip_coefficient(5, 0) == 1);
}

std::vector<Real> random_values(Index count, std::uint64_t site) {
  const Rng rng(11, 0, site);
  std::vector<Real> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Real>(rng.normal(i));
  return out;
}

/// Three groups with odd borders, a gap between the last two, and more than one block each but for the first.
const std::vector<ParameterGroup> kGroups = {{.begin = 0, .end = 37},
                                             {.begin = 37, .end = 40'001, .decay = false},
                                             {.begin = 40'010, .end = 99'999, .lr_scale = 0.5}};
constexpr Index kCount = 100'003;

struct Outcome {
  std::vector<Real> params;
  std::vector<std::vector<Real>> state;
  double norm;
  bool operator==(const Outcome&) const = default;
};

Outcome run_three_steps(OptimizerKind kind, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  Outcome out{.params = random_values(kCount, 1), .state = {}, .norm = 0};
  Optimizer optimizer({.kind = kind}, kGroups);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::vector<Real> grads = random_values(kCount, 2 + i);
    out.norm = grad_norm(grads).norm;
    optimizer.step(out.params, grads, 0.01, clip_coefficient(out.norm, 1));
  }
  for (const auto& array : optimizer.state()) out.state.emplace_back(array.values.begin(), array.values.end());
  omp_set_num_threads(before);
  return out;
}

TEST_CASE("optimizer: the number of threads does not change one bit") {
  for (const OptimizerEntry& entry : optimizer_table()) {
    INFO(entry.name);
    const Outcome one = run_three_steps(entry.kind, 1);
    for (const int threads : {2, 3, 4, 7}) CHECK(run_three_steps(entry.kind, threads) == one);
  }
}

TEST_CASE("optimizer: a group has its own rate, and what is in no group stays") {
  std::vector<Real> params = random_values(kCount, 1);
  const std::vector<Real> before = params, grads = random_values(kCount, 2);
  Optimizer optimizer({.kind = OptimizerKind::kNag, .beta1 = 0.5, .weight_decay = 0}, kGroups);
  CHECK(optimizer.size() == 99'999);
  optimizer.step(params, grads, 0.1);
  for (const std::size_t i : {0UL, 36UL, 37UL, 40'000UL}) {
    CHECK(params[i] - before[i] == doctest::Approx(-0.15 * grads[i]).epsilon(1e-4));
  }
  for (const std::size_t i : {40'010UL, 99'998UL}) {
    CHECK(params[i] - before[i] == doctest::Approx(-0.075 * grads[i]).epsilon(1e-4));
  }
  for (const std::size_t i : {40'001UL, 40'009UL, 99'999UL, 100'002UL}) CHECK(params[i] == before[i]);
}

TEST_CASE("optimizer: state copied into a fresh one goes on bit for bit") {
  for (const OptimizerEntry& entry : optimizer_table()) {
    INFO(entry.name);
    std::vector<Real> params = random_values(17, 1);
    Optimizer first({.kind = entry.kind}, {{.begin = 0, .end = 17}});
    first.step(params, random_values(17, 2), 0.01);
    std::vector<Real> resumed = params;
    Optimizer second({.kind = entry.kind}, {{.begin = 0, .end = 17}});
    second.set_steps_taken(first.steps_taken());
    for (std::size_t i = 0; i < first.state().size(); ++i) {
      CHECK(first.state()[i].name == second.state()[i].name);
      std::ranges::copy(first.state()[i].values, second.state()[i].values.begin());
    }
    first.step(params, random_values(17, 3), 0.02);
    second.step(resumed, random_values(17, 3), 0.02);
    CHECK(params == resumed);
  }
}

TEST_CASE("optimizer: a gradient that is not finite is found by its index") {
  std::vector<Real> grads = random_values(kCount, 1);
  CHECK(grad_norm(grads).first_bad == -1);
  grads[77'777] = std::numeric_limits<Real>::infinity();
  CHECK(grad_norm(grads).first_bad == 77'777);
  grads[50'001] = std::numeric_limits<Real>::quiet_NaN();
  CHECK(grad_norm(grads).first_bad == 50'001);
  CHECK(grad_norm({}).norm == 0);
}

TEST_CASE("optimizer: the norm of many equal gradients is exact in double") {
  const std::vector<Real> grads(1'000'003, Real{0.5});
  CHECK(grad_norm(grads).norm == std::sqrt(1'000'003 * 0.25));
}

TEST_CASE("optimizer: one table names them, and what makes no sense is refused") {
  for (const OptimizerEntry& entry : optimizer_table()) {
    CHECK(optimizer_from_name(entry.name) == entry.kind);
    CHECK(optimizer_name(entry.kind) == entry.name);
  }
  CHECK_THROWS_WITH_AS(optimizer_from_name("sgd"),
                       "optimizer: no optimizer is called 'sgd'; choose one of adamw, adam, nag", UsageError);
  CHECK_THROWS_AS(Optimizer({.beta1 = 1}, {}), UsageError);
  CHECK_THROWS_AS(Optimizer({.beta2 = -0.1}, {}), UsageError);
  CHECK_THROWS_AS(Optimizer({.eps = 0}, {}), UsageError);
  CHECK_THROWS_AS(Optimizer({.weight_decay = std::nan("")}, {}), UsageError);
  CHECK_THROWS_AS(Optimizer({}, {{.begin = 0, .end = 5}, {.begin = 4, .end = 6}}), ShapeError);
  Optimizer optimizer({}, {{.begin = 0, .end = 5}});
  std::vector<Real> four(4), five(5);
  CHECK_THROWS_AS(optimizer.step(four, four, 0.1), ShapeError);
  CHECK_THROWS_AS(optimizer.step(five, four, 0.1), ShapeError);
  CHECK(optimizer.steps_taken() == 0);
}

}  // namespace
}  // namespace quipu::inline QUIPU_REAL_NS
