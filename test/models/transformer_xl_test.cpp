// Transformer-XL as a whole model, alone and with memory tokens around it, against the published implementations.
#include <doctest/doctest.h>

#include "models/transformer_xl_names.h"

using namespace quipu;

namespace {

/// Runs a published case, all segments on one tape: losses of all tokens, and all gradients. Returns the final state.
ModelState check_model(const GoldenCase& golden, Index segment) {
  INFO(golden.name());
  SegmentGolden published(golden, transformer_xl_config(golden, segment), transformer_xl_name);
  LanguageModel& model = published.model();
  const Index lanes = 2, length = 21;
  const std::vector<std::int32_t> tokens = published.columns(0, length), targets = published.columns(1, length + 1);
  const Layout layout = Layout::fresh(lanes, length);
  ModelState state = model.initial_state(lanes);
  Tape tape(true);
  const Var hidden = model.forward(tape, tokens, {.layout = layout}, state);
  CHECK(relative_error(model.loss(tape, hidden, targets).nll_nats, golden.tensor("output").values) < kOutputTolerance);

  const GoldenTensor cotangent = golden.tensor("cotangent");
  std::vector<std::pair<Var, Tensor>> seeds;  // the published loss weighs every token
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::vector<std::int32_t> one(targets.size(), kNoTarget);
    one[i] = targets[i];
    seeds.emplace_back(model.loss(tape, hidden, one).loss, Tensor::full({1}, static_cast<Real>(cotangent.values[i])));
  }
  tape.backward(seeds);
  published.check_gradients();
  return state;
}

}  // namespace

TEST_CASE("transformer-xl: the published model over three segments") {
  const GoldenCase golden = GoldenFile("transformer_xl").at("model_three_segments");
  const ModelState state = check_model(golden, static_cast<Index>(golden.number("tgt_len")));
  for (std::size_t layer = 0; layer < 2; ++layer)
    CHECK(relative_error(state.layers[2 * layer].real(0).value(),
                         golden.tensor(fmt::format("final_state/mem_{}", layer))) < kOutputTolerance);
}

TEST_CASE("transformer-xl: memory tokens around it, with and without its cache") {
  for (const char* name : {"txl_rmt_full_bptt", "txl_rmt_mem9_full_bptt", "txl_rmt_mem9_readcache"}) {
    const GoldenCase golden = GoldenFile("rmt").at(name);
    const ModelState state = check_model(golden, static_cast<Index>(golden.number("segment_len")));
    CHECK(relative_error(state.layers.back().real(0).value(), golden.tensor("final_state/memory")) < kOutputTolerance);
  }
}

TEST_CASE("transformer-xl: a published block, normalised first, over a cache") {
  const GoldenCase golden = GoldenFile("transformer_xl").at("block_prenorm_T17_mem23");
  ModelConfig config;
  config.mixer = "transformer_xl", config.vocab = 2, config.dim = 16, config.layers = 1, config.length = 17;
  config.heads = static_cast<Index>(golden.number("num_heads"));
  config.options = {{"transformer_xl.memory", "23"}, {"transformer_xl.pre_norm", "true"}, {"mlp.hidden", "32"}};
  LanguageModel model(config, true);
  const auto path = [](const std::string& name) {
    std::string theirs = transformer_xl_name(name).path;
    return theirs.starts_with("layers.0.") ? theirs.replace(0, 9, "l.") : theirs;
  };
  const auto in_block = [](const std::string& name) {
    return name.starts_with("layers.") || name.starts_with("shared.");
  };
  for (const auto& e : model.parameters().trainable())
    if (in_block(e.name)) {
      const Tensor value = tensor_of(golden.tensor("param/" + path(e.name)));
      std::copy_n(value.data(), value.count(), e.parameter->value().data());
    }
  model.parameters().zero_gradients();
  const Var x = Var::leaf(tensor_of(golden.tensor("input/x")));
  ModelState state = model.initial_state(2);
  state.layers[0].real(0) = Var::leaf(tensor_of(golden.tensor("input/mem")));
  state.layers[0].integers(3) = {23, 23};
  const Var cache = state.layers[0].real(0);
  const Layout layout = Layout::plain(2, 17);
  Tape tape(true);
  const Block& block = model.blocks()[0];
  Var y = x;
  for (Index line = 0; line < block.lines(); ++line)
    y = block.forward(tape, line, y, {.layout = layout}, state.layers[static_cast<std::size_t>(line)]);
  CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
  tape.backward(y, tensor_of(golden.tensor("cotangent")));
  CHECK(relative_error(x.gradient()->sum(), golden.tensor("grad/input/x")) < kGradientTolerance);
  CHECK(cache.gradient()->empty());
  for (const auto& e : model.parameters().trainable()) {
    CAPTURE(e.name);
    if (!in_block(e.name)) continue;
    const auto g = model.parameters().gradients().subspan(static_cast<std::size_t>(e.begin),
                                                          static_cast<std::size_t>(e.end - e.begin));
    CHECK(relative_error(g, golden.tensor("grad/param/" + path(e.name)).values) < kGradientTolerance);
  }
}
