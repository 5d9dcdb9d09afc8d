#include "train/sample.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

using namespace quipu;

namespace {

std::vector<Real> reals(std::initializer_list<double> values) {
  std::vector<Real> out;
  for (const double value : values) out.push_back(static_cast<Real>(value));
  return out;
}

/// Logits of a peaked distribution; `steps` > 0 rounds them, so that many are equal.
std::vector<Real> random_logits(std::size_t vocab, std::uint64_t seed, double steps = 0) {
  const Rng rng(seed, 0, rng_site("logits"));
  std::vector<Real> logits(vocab);
  for (std::size_t i = 0; i < vocab; ++i) {
    const double x = 3 * rng.normal(i);
    logits[i] = static_cast<Real>(steps > 0 ? std::round(x * steps) / steps : x);
  }
  return logits;
}

/// The same filters by their definition: everything sorted, then cut.
std::vector<double> brute_force(const std::vector<Real>& logits, const SamplingOptions& o,
                                const std::vector<std::int32_t>& recent) {
  std::vector<double> z(logits.begin(), logits.end());
  std::vector<bool> seen(z.size(), false);
  for (const std::int32_t token : recent) seen[static_cast<std::size_t>(token)] = true;
  for (std::size_t i = 0; i < z.size(); ++i)
    if (seen[i]) z[i] = z[i] > 0 ? z[i] / o.repetition_penalty : z[i] * o.repetition_penalty;
  const double highest = *std::ranges::max_element(z);
  std::vector<std::size_t> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
  if (o.top_k > 0 && o.top_k < static_cast<Index>(order.size())) order.resize(static_cast<std::size_t>(o.top_k));
  const auto weight = [&](std::size_t i) { return std::exp((z[i] - highest) / o.temperature); };
  double total = 0, sum = 0;
  for (const std::size_t i : order) total += weight(i);
  std::size_t kept = 0;
  while (kept < order.size() && (kept == 0 || o.top_p == 1 || sum < o.top_p * total)) sum += weight(order[kept++]);
  order.resize(kept);
  std::vector<double> weights(z.size(), 0);
  for (const std::size_t i : order)
    if (weight(i) >= o.min_p) weights[i] = weight(i);
  return weights;
}

void check_against_brute_force(const std::vector<Real>& logits, const SamplingOptions& options,
                               const std::vector<std::int32_t>& recent = {}) {
  Sampler sampler(options, static_cast<Index>(logits.size()));
  for (const std::int32_t token : recent) sampler.observe(token);
  const auto got = sampler.weights(logits);
  const auto wanted = brute_force(logits, options, recent);
  CAPTURE(options.temperature);
  CAPTURE(options.top_k);
  CAPTURE(options.top_p);
  CAPTURE(options.min_p);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double w = wanted[i], g = static_cast<double>(got[i]);
    const bool tiny = w > 0 && w < 1e-36;  // may be 0 in single precision
    if (tiny ? g > 2e-36 : (g == 0) != (w == 0) || std::abs(g - w) > 2e-5 * w) ++differing;
  }
  CHECK(differing == 0);
}

}  // namespace

TEST_CASE("sampling: each filter keeps what its definition says") {
  for (const std::size_t vocab : {std::size_t{1}, std::size_t{7}, std::size_t{300}, std::size_t{65536}}) {
    CAPTURE(vocab);
    const auto logits = random_logits(vocab, vocab);
    check_against_brute_force(logits, {.temperature = 1});
    check_against_brute_force(logits, {.temperature = 0.3});
    check_against_brute_force(logits, {.temperature = 2.5});
    for (const Index k : {Index{1}, Index{5}, Index{200}, Index{5000}, Index{65536}, Index{100000}})
      check_against_brute_force(logits, {.temperature = 0.9, .top_k = k});
    for (const double p : {1e-9, 0.1, 0.5, 0.9, 0.99, 0.9999})
      check_against_brute_force(logits, {.temperature = 1.1, .top_p = p});
    for (const double p : {1e-4, 0.03, 0.5, 1.0}) check_against_brute_force(logits, {.temperature = 1, .min_p = p});
    check_against_brute_force(logits, {.temperature = 1.5, .top_k = 50, .top_p = 0.8, .min_p = 0.05});
    check_against_brute_force(logits, {.temperature = 4, .top_k = 2000, .top_p = 0.95, .min_p = 0.001});
  }
}

TEST_CASE("sampling: of equal tokens the lower ids stay") {
  // Halves are exact in binary, as are their differences: equal logits give equal weights.
  const auto logits = random_logits(300, 3, 2);
  for (const Index k : {1, 2, 3, 10, 50, 150, 299}) check_against_brute_force(logits, {.temperature = 1, .top_k = k});
  const std::vector<Real> flat(10, Real{0.5});
  Sampler three({.temperature = 1, .top_k = 3}, 10);
  const auto weights = three.weights(flat);
  for (std::size_t i = 0; i < flat.size(); ++i) CHECK(weights[i] == (i < 3 ? Real{1} : Real{0}));
  Sampler half({.temperature = 1, .top_p = 0.5}, 10);
  const auto nucleus = half.weights(flat);
  for (std::size_t i = 0; i < flat.size(); ++i) CHECK(nucleus[i] == (i < 5 ? Real{1} : Real{0}));
}

TEST_CASE("sampling: the repetition penalty counts a recent token once, and forgets old ones") {
  const auto logits = random_logits(500, 8);
  std::vector<std::int32_t> recent{3, 3, 3, 77, 499, 0};
  check_against_brute_force(logits, {.temperature = 1, .repetition_penalty = 1.3}, recent);
  check_against_brute_force(logits, {.temperature = 1, .top_k = 20, .repetition_penalty = 0.8}, recent);

  Sampler sampler({.temperature = 1, .repetition_penalty = 2}, 500);
  for (Index i = 0; i < kRepetitionWindow + 10; ++i) sampler.observe(static_cast<std::int32_t>(i % 400));
  const auto kept = sampler.recent();
  REQUIRE(static_cast<Index>(kept.size()) == kRepetitionWindow);
  CHECK(kept.front() == 10);
  CHECK(kept.back() == (kRepetitionWindow + 9) % 400);
  const auto got = sampler.weights(logits);
  const auto wanted = brute_force(logits, {.temperature = 1, .repetition_penalty = 2}, kept);
  CHECK(static_cast<double>(got[5]) == doctest::Approx(wanted[5]).epsilon(1e-4));
  CHECK(static_cast<double>(got[20]) == doctest::Approx(wanted[20]).epsilon(1e-4));

  Sampler greedy({.repetition_penalty = 4}, 3);
  const auto close = reals({1, 0.9, -1});
  CHECK(greedy.next(close, 0) == 0);
  greedy.observe(0);
  CHECK(greedy.next(close, 1) == 1);
}

TEST_CASE("sampling: draws follow the distribution (chi-square)") {
  const auto logits = reals({0.3, -1, 1.2, 0, -2.5, 0.9, -0.4});
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 1, .seed = 11}, SamplingOptions{.temperature = 0.7, .top_k = 5, .seed = 12},
        SamplingOptions{.temperature = 1.4, .top_p = 0.8, .seed = 13}}) {
    Sampler sampler(options, 7);
    const auto weights = brute_force(logits, options, {});
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    constexpr int kDraws = 40000;
    std::vector<int> counts(7, 0);
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sampler.next(logits, i))];
    double chi_square = 0;
    for (std::size_t i = 0; i < 7; ++i) {
      const double expected = kDraws * weights[i] / total;
      if (expected == 0)
        CHECK(counts[i] == 0);
      else
        chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    CHECK(chi_square < 22.46);  // 6 degrees of freedom, p = 0.001
  }
}

TEST_CASE("sampling: draws are a function of seed and position") {
  const auto logits = random_logits(1000, 5);
  const SamplingOptions options{.temperature = 2, .top_p = 0.95, .seed = 42};
  Sampler forward(options, 1000), backward(options, 1000);
  std::vector<std::int32_t> a, b;
  for (int i = 0; i < 50; ++i) a.push_back(forward.next(logits, i));
  for (int i = 49; i >= 0; --i) b.push_back(backward.next(logits, i));
  std::ranges::reverse(b);
  CHECK(a == b);
  SamplingOptions other_options = options;
  other_options.seed = 43;
  Sampler other(other_options, 1000);
  std::vector<std::int32_t> c;
  for (int i = 0; i < 50; ++i) c.push_back(other.next(logits, i));
  CHECK(a != c);
}

TEST_CASE("sampling: greedy takes the most likely token, of equals the lowest id") {
  auto logits = random_logits(400, 6);
  logits[17] = logits[250] = 50;
  Sampler greedy({}, 400);
  CHECK(greedy.next(logits, 0) == 17);
  CHECK(greedy.next(logits, 99) == 17);
  Sampler cold({.temperature = 1e-30}, 400);
  logits[250] = Real{49};
  CHECK(cold.next(logits, 0) == 17);
  Sampler one({.temperature = 3, .top_k = 1}, 400);
  CHECK(one.next(logits, 5) == 17);
}

TEST_CASE("sampling: logits that are not finite, and options out of range, are errors") {
  auto logits = random_logits(64, 7);
  for (const Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity(),
                         -std::numeric_limits<Real>::infinity()}) {
    logits[40] = bad;
    Sampler greedy({}, 64), warm({.temperature = 1}, 64);
    CHECK_THROWS_AS(greedy.next(logits, 0), NumericError);
    CHECK_THROWS_AS(warm.next(logits, 0), NumericError);
  }
  for (const SamplingOptions& wrong :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.temperature = std::nan("")}, SamplingOptions{.top_k = -1},
        SamplingOptions{.top_p = 0}, SamplingOptions{.top_p = 1.5}, SamplingOptions{.min_p = -0.1},
        SamplingOptions{.repetition_penalty = 0}})
    CHECK_THROWS_AS(Sampler(wrong, 64), UsageError);
  Sampler sampler({}, 63);
  CHECK_THROWS_AS(sampler.next(logits, 0), ShapeError);
}
