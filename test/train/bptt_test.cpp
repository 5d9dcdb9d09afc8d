#include "train/bptt.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/language_model.h"

using namespace quipu;

namespace {

constexpr Index kLanes = 2, kLength = 5, kVocab = 11;

ModelConfig config(const std::string& mixer, Index memory_tokens) {
  ModelConfig c;
  c.vocab = kVocab, c.dim = 12, c.layers = 2, c.heads = 2, c.length = kLength, c.mixer = mixer;
  c.memory_tokens = memory_tokens;
  return c;
}

/// A window of segments of random tokens; a document starts inside one of them.
struct Window {
  std::vector<std::vector<std::int32_t>> tokens, targets;
  std::vector<Layout> layouts;
  std::vector<TrainingSegment> segments;

  explicit Window(Index count) {
    const Rng rng(3, 0, 0);
    for (Index s = 0; s < count; ++s) {
      const auto draw = [&](Index site) {
        std::vector<std::int32_t> ids(kLanes * kLength);
        for (std::size_t i = 0; i < ids.size(); ++i)
          ids[i] = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(2 * s + site) * 100 + i, kVocab));
        return ids;
      };
      tokens.push_back(draw(0)), targets.push_back(draw(1));
      layouts.push_back(s == 0 ? Layout::fresh(kLanes, kLength) : Layout::plain(kLanes, kLength));
      if (s == 1) layouts.back().starts = {{}, {3}};
    }
    for (std::size_t s = 0; s < tokens.size(); ++s) segments.push_back({tokens[s], {.layout = layouts[s]}});
  }

  /// The flat gradients, and the summed loss.
  std::pair<std::vector<Real>, double> run(LanguageModel& model, const GradientReach& reach,
                                           std::vector<std::size_t> counted = {}) const {
    model.parameters().zero_gradients();
    ModelState state = model.initial_state(kLanes);
    double sum = 0;
    const SegmentLoss loss = [&](Tape& tape, std::size_t s, const Var& hidden) {
      const bool counts = counted.empty() || std::ranges::count(counted, s) > 0;
      const std::vector<std::int32_t> none(targets[s].size(), kNoTarget);
      const LossOutput out = model.loss(tape, hidden, counts ? targets[s] : none, {.divisor = 7});
      sum += out.nll_sum_nats;
      return out.loss;
    };
    backward_through_segments(model, segments, loss, reach, state);
    const auto flat = model.parameters().gradients();
    return {{flat.begin(), flat.end()}, sum};
  }
};

double difference(const std::vector<Real>& a, const std::vector<Real>& b) {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i] - b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return worst / largest;
}

#ifdef QUIPU_DOUBLE
constexpr double kSame = 1e-12;
#else
constexpr double kSame = 2e-5;
#endif

std::vector<ModelConfig> models() {
  return {config("gsa", 0), config("gsa", 3), config("attention", 2), config("rwkv7,attention", 0)};
}

}  // namespace

TEST_CASE("bptt: a window gives the gradients of one piece, kept or recomputed") {
  for (const ModelConfig& c : models()) {
    INFO(c.mixer << " " << c.memory_tokens);
    LanguageModel model(c, true);
    model.parameters().initialise(5);
    const Window window(4);
    const auto kept = window.run(model, {});
    const auto recomputed = window.run(model, {.recompute = true});
    CHECK(difference(recomputed.first, kept.first) < kSame);
    CHECK(recomputed.second == doctest::Approx(kept.second).epsilon(1e-12));
    CHECK(difference(window.run(model, {.depth = 3}).first, kept.first) < kSame);
    CHECK(difference(window.run(model, {.detach_every = 4}).first, kept.first) < kSame);
    // What crosses a boundary matters.
    CHECK(difference(window.run(model, {.depth = 0}).first, kept.first) > 1e-4);
  }
}

TEST_CASE("bptt: depth n is the sum of windows that start n segments before their loss") {
  for (const ModelConfig& c : models())
    for (const Index depth : {0, 1, 2}) {
      INFO(c.mixer << " " << c.memory_tokens << " depth " << depth);
      LanguageModel model(c, true);
      model.parameters().initialise(5);
      const Window window(4);
      const auto truncated = window.run(model, {.depth = depth}).first;
      std::vector<Real> sum(truncated.size(), 0);
      for (Index s = 0; s < 4; ++s) {
        // The loss of segment s alone, all states before segment s - depth constants.
        ModelState state = model.initial_state(kLanes);
        const Index first = std::max<Index>(0, s - depth);
        for (Index i = 0; i < first; ++i) {
          Tape tape(false);
          const auto& segment = window.segments[static_cast<std::size_t>(i)];
          model.forward(tape, segment.tokens, segment.context, state);
        }
        model.parameters().zero_gradients();
        Tape tape(true);
        Var loss;
        for (Index i = first; i <= s; ++i) {
          const auto& segment = window.segments[static_cast<std::size_t>(i)];
          const Var hidden = model.forward(tape, segment.tokens, segment.context, state);
          if (i == s) loss = model.loss(tape, hidden, window.targets[static_cast<std::size_t>(i)], {.divisor = 7}).loss;
        }
        tape.backward(loss);
        const auto flat = model.parameters().gradients();
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += flat[i];
      }
      CHECK(difference(truncated, sum) < kSame);
    }
}

TEST_CASE("bptt: detaching every n segments cuts all gradients there") {
  LanguageModel model(config("gsa", 2), true);
  model.parameters().initialise(5);
  const Window window(4);
  const auto cheap = window.run(model, {.detach_every = 2}).first;
  CHECK(difference(window.run(model, {.detach_every = 2, .recompute = true}).first, cheap) < kSame);
  CHECK(difference(window.run(model, {.detach_every = 1}).first, window.run(model, {.depth = 0}).first) < kSame);
  CHECK(difference(cheap, window.run(model, {.depth = 1}).first) > 1e-4);
}

#ifdef QUIPU_DOUBLE
TEST_CASE("bptt: gradients through three segments agree with finite differences") {
  for (const ModelConfig& c : models()) {
    INFO(c.mixer << " " << c.memory_tokens);
    LanguageModel model(c, true);
    model.parameters().initialise(5);
    const Window window(3);
    const std::vector<Real> gradient = window.run(model, {.recompute = true}).first;
    const auto values = model.parameters().values();
    const auto loss = [&] { return window.run(model, {}).second / 7; };
    const double step = 1e-5;
    const Rng rng(8, 0, 0);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::size_t at = rng.below(i, values.size());
      CAPTURE(model.parameters().name_at(static_cast<Index>(at)));
      const Real before = values[at];
      values[at] = before + step;
      const double above = loss();
      values[at] = before - step;
      const double below = loss();
      values[at] = before;
      CHECK(std::abs((above - below) / (2 * step) - gradient[at]) < 1e-7 + 1e-6 * std::abs(gradient[at]));
    }
  }
}
#endif
