// RWKV-7's time mixing: published layers, what they start from, and the values that go up the stack.
#include "mixers/golden_layer.h"
#include "models/language_model.h"

using namespace quipu;

namespace {

const std::map<std::string, PublishedName> kNames{
    {"w1.weight", {"w1", 0, 1, true}}, {"w2.weight", {"w2", 0, 1, true}}, {"w2.bias", {"w0"}},
    {"a1.weight", {"a1", 0, 1, true}}, {"a2.weight", {"a2", 0, 1, true}}, {"a2.bias", {"a0"}},
    {"v1.weight", {"v1", 0, 1, true}}, {"v2.weight", {"v2", 0, 1, true}}, {"v2.bias", {"v0"}},
    {"g1.weight", {"g1", 0, 1, true}}, {"g2.weight", {"g2", 0, 1, true}}};

/// Published memories stand as [B,H,V,K], ours as [B,H,K,V].
GoldenTensor turned(const GoldenTensor& x) {
  const auto width = static_cast<std::size_t>(x.shape[2]);
  GoldenTensor y{x.shape, std::vector<double>(x.values.size())};
  for (std::size_t i = 0; i < x.values.size(); i += width * width)
    for (std::size_t v = 0; v < width; ++v)
      for (std::size_t k = 0; k < width; ++k) y.values[i + k * width + v] = x.values[i + v * width + k];
  return y;
}

LayerForm form_of(Index layer) {
  return {.options = {{"decay_low_rank_dim", "4"},
                      {"a_low_rank_dim", "4"},
                      {"v_low_rank_dim", "4"},
                      {"gate_low_rank_dim", "6"}},
          .names = kNames,
          .leaves = {{"S", {"S", turned}}},
          .site = {layer, 3}};
}

ModelConfig small_model() {
  ModelConfig config;
  config.vocab = 19, config.dim = 24, config.layers = 3, config.heads = 3, config.length = 64, config.mixer = "rwkv7";
  return config;
}

/// Parameters large enough that every path matters.
void start(LanguageModel& model) {
  model.parameters().initialise(5);
  const Tensor noise = random_tensor({model.parameters().count()}, 99, 0.3);
  for (Index i = 0; i < noise.count(); ++i) model.parameters().values()[static_cast<std::size_t>(i)] += noise.data()[i];
}

std::vector<std::int32_t> some_tokens(Index n) {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>((i * i + 3 * i) % 19));
  return tokens;
}

}  // namespace

TEST_CASE("golden: RWKV-7's time mixing") {
  check_layer("rwkv7", "time_mix_layer0_T17", "rwkv7", form_of(0));
  check_layer("rwkv7", "time_mix_layer1_T64", "rwkv7", form_of(1));
  check_layer("rwkv7", "time_mix_layer1_state", "rwkv7", form_of(1));
}

TEST_CASE("RWKV-7 starts as published") {
  const GoldenCase golden = GoldenFile("rwkv7").at("init");
  for (const Index layer : {0, 1, 3}) {
    SharedParameters shared;
    Options options;
    const auto made = find_mixer("rwkv7", false).make({16, 2, 64, {layer, 4}, options, shared});
    Parameters parameters([&](const ParameterVisitor& visitor) { made->visit(visitor); }, false);
    parameters.initialise(1);
    const std::string group = fmt::format("layer{}_of4_C16_N8/", layer);
    std::size_t found = 0;
    for (const auto& entry : parameters.trainable()) {
      const auto known = kNames.find(entry.name);
      const std::string path = group + (known == kNames.end() ? entry.name : known->second.name);
      if (!golden.has(path)) continue;
      CAPTURE(path);
      ++found;
      CHECK(relative_error(entry.parameter->value().span(), golden.tensor(path).values) < 1e-6);
      CHECK_FALSE(entry.parameter->traits().decay);
    }
    CHECK(found == golden.tensors(group).size() - (layer == 0 ? 1 : 0));  // the first layer has no v0
  }
}

TEST_CASE("RWKV-7's values of the first layer reach the others in all forms") {
  LanguageModel model(small_model(), true);
  model.parameters().initialise(5);
  const Tensor noise = random_tensor({model.parameters().count()}, 99, 0.3);
  for (Index i = 0; i < noise.count(); ++i) model.parameters().values()[static_cast<std::size_t>(i)] += noise.data()[i];
  const auto tokens = some_tokens(40);
  const Layout layout = Layout::plain(1, 40);
  Tape tape(false);
  ModelState parallel = model.initial_state(1), recurrent = parallel;
  const Var hidden = model.forward(tape, tokens, {.layout = layout}, parallel);
  const Tensor all({40, 19}), one({1, 19});
  model.logits_into(all.matrix(), hidden.value().matrix());
  Scratch scratch;
  double worst = 0;
  for (Index t = 0; t < 40; ++t) {
    model.step({tokens.data() + t, 1}, recurrent, scratch, one.matrix());
    worst = std::max(worst, relative_error(one, all.part(t * 19, {1, 19})));
  }
  CHECK(worst < (kIsDouble ? 1e-10 : 1e-4));

  // The layers above do see them: without their share, the same model says something else.
  for (const auto& entry : model.parameters().trainable())
    if (entry.name.find("v2.bias") != std::string::npos)
      for (Real& value : entry.parameter->value().span()) value = -100;
  ModelState fresh = model.initial_state(1);
  const Var other = model.forward(tape, tokens, {.layout = layout}, fresh);
  CHECK(relative_error(other.value(), hidden.value()) > 1e-3);
}

TEST_CASE("RWKV-7's gradients are the same where activations are recomputed") {
  LanguageModel model(small_model(), true);
  start(model);
  const auto tokens = some_tokens(40);
  const Layout layout = Layout::plain(1, 40);
  std::vector<Tensor> gradients;
  for (const bool recompute : {false, true}) {
    model.set_checkpoint_activations(recompute);
    model.parameters().zero_gradients();
    Tape tape(true);
    ModelState state = model.initial_state(1);
    const Var hidden = model.forward(tape, tokens, {.layout = layout}, state);
    tape.backward(hidden, random_tensor(hidden.shape(), 7));
    gradients.push_back(Tensor::zeros({model.parameters().count()}));
    std::ranges::copy(model.parameters().gradients(), gradients.back().data());
  }
  CHECK(std::ranges::equal(gradients[0].span(), gradients[1].span()));
  CHECK(std::ranges::any_of(gradients[0].span(), [](Real g) { return g != 0; }));
}
