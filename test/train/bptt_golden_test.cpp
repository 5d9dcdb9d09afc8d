// Gradients to a given depth of segments against the published Recurrent Memory Transformer.
#include <doctest/doctest.h>

#include "models/transformer_xl_names.h"
#include "train/bptt.h"

using namespace quipu;

namespace {

/// The published loss weighs every token.
Var weighted_loss(Tape& tape, const LanguageModel& model, const Var& hidden, const std::vector<std::int32_t>& targets,
                  std::span<const double> weights) {
  Var sum;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::vector<std::int32_t> one(targets.size(), kNoTarget);
    one[i] = targets[i];
    const Var term = scale(tape, model.loss(tape, hidden, one).loss, static_cast<Real>(weights[i]));
    sum = sum.defined() ? add(tape, sum, term) : term;
  }
  return sum;
}

void check_depth(const GoldenCase& golden, const GradientReach& reach) {
  INFO(golden.name());
  const auto length = static_cast<Index>(golden.number("segment_len"));
  const Index lanes = 2, count = 3;
  SegmentGolden published(golden, transformer_xl_config(golden, length), transformer_xl_name);
  LanguageModel& model = published.model();
  const GoldenTensor cotangent = golden.tensor("cotangent");

  std::vector<std::vector<std::int32_t>> tokens, targets;
  std::vector<std::vector<double>> weights(count);
  for (Index s = 0; s < count; ++s) {
    tokens.push_back(published.columns(s * length, (s + 1) * length));
    targets.push_back(published.columns(s * length + 1, (s + 1) * length + 1));
    for (Index b = 0; b < lanes; ++b)
      for (Index t = 0; t < length; ++t)
        weights[static_cast<std::size_t>(s)].push_back(
            cotangent.values[static_cast<std::size_t>((b * count + s) * length + t)]);
  }
  const Layout fresh = Layout::fresh(lanes, length), going_on = Layout::plain(lanes, length);
  std::vector<TrainingSegment> segments;
  for (std::size_t s = 0; s < tokens.size(); ++s)
    segments.push_back({tokens[s], {.layout = s == 0 ? fresh : going_on}});

  ModelState state = model.initial_state(lanes);
  backward_through_segments(
      model, segments,
      [&](Tape& tape, std::size_t s, const Var& hidden) {
        return weighted_loss(tape, model, hidden, targets[s], weights[s]);
      },
      reach, state);
  published.check_gradients();
  CHECK(relative_error(state.layers.back().real(0).value(), golden.tensor("final_state/memory")) < kOutputTolerance);
}

}  // namespace

TEST_CASE("bptt: the published gradients at depths 0, 1 and all, with a cache beside the memory and without") {
  const GoldenFile file("rmt");
  check_depth(file.at("txl_rmt_depth0"), {.depth = 0});
  check_depth(file.at("txl_rmt_depth0"), {.detach_every = 1});
  check_depth(file.at("txl_rmt_depth1"), {.depth = 1});
  for (const char* name : {"txl_rmt_full_bptt", "txl_rmt_mem9_full_bptt", "txl_rmt_mem9_readcache"}) {
    check_depth(file.at(name), {});
    check_depth(file.at(name), {.recompute = true});
    check_depth(file.at(name), {.depth = 2});
  }
}
