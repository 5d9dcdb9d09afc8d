#include <doctest/doctest.h>

#include <cmath>

#include "mixers/instance.h"

using namespace quipu;

namespace {

std::vector<std::string> trainable(const MixerInstance& m) {
  std::vector<std::string> names;
  for (const auto& entry : m.parameters->trainable()) names.push_back(entry.name);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TEST_CASE("memsizer: frozen keys are a buffer, learned ones a parameter, and the paper's form has no biases") {
  const MixerInstance learned({"memsizer", 24, 3, {{"slots", "5"}}});
  const MixerInstance fixed({"memsizer", 24, 3, {{"slots", "5"}, {"keys", "fixed"}}});
  const MixerInstance paper({"memsizer", 24, 3, {{"slots", "5"}, {"variant", "paper"}}});
  CHECK(contains(trainable(learned), "q_proj.weight"));
  CHECK(contains(trainable(learned), "q_proj.bias"));
  CHECK_FALSE(contains(trainable(fixed), "q_proj.weight"));
  CHECK_FALSE(contains(trainable(fixed), "q_proj.bias"));
  REQUIRE(fixed.parameters->buffers().size() == 1);
  CHECK(fixed.parameters->buffers()[0].name == "q_proj.weight");
  CHECK(contains(trainable(paper), "q_proj.weight"));
  for (const char* name : {"q_proj.bias", "k_proj.bias", "v_proj.bias"}) CHECK_FALSE(contains(trainable(paper), name));
}

TEST_CASE("memsizer: the published initial scales") {
  Options options({{"q_init_scale", "4"}, {"kv_init_scale", "16"}, {"slots", "100"}});
  SharedParameters shared;
  MixerInstance m(48, find_mixer("memsizer", false).make({48, 5, 512, {}, options, shared}));
  m.parameters->initialise(1);
  for (const auto& entry : m.parameters->trainable()) {
    const double gain = entry.name == "q_proj.weight" ? 0.5 : 0.25;
    const Shape& shape = entry.parameter->shape();
    if (entry.name.find("_proj.weight") == std::string::npos) continue;
    const double bound = gain * std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
    double largest = 0;
    for (const Real value : entry.parameter->value().span())
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    CAPTURE(entry.name);
    CHECK(largest <= bound * 1.0001);
    CHECK(largest > bound * 0.99);
  }
}

TEST_CASE("memsizer: slots are dropped in training alone, another set each step, and gradients go the same way") {
  const MixerInstance m({"memsizer", 24, 3, {{"slots", "5"}}});
  const Layout layout = Layout::plain(1, 20);
  const Tensor x = random_tensor({1, 20, 24}, 1);
  const auto run = [&](Context context) {
    Tape tape(false);
    State state = m.mixer->initial_state(1);
    return m.mixer->forward(tape, x, context, state).value();
  };
  const Tensor plain = run({.layout = layout}), evaluated = run({.layout = layout, .dropout = 0.5});
  const Tensor first = run({.layout = layout, .training = true, .seed = 3, .step = 1, .dropout = 0.5});
  const Tensor again = run({.layout = layout, .training = true, .seed = 3, .step = 1, .dropout = 0.5});
  const Tensor next = run({.layout = layout, .training = true, .seed = 3, .step = 2, .dropout = 0.5});
  CHECK(relative_error(evaluated, plain) == 0);
  CHECK(relative_error(again, first) == 0);
  CHECK(relative_error(first, plain) > 0.1);
  CHECK(relative_error(next, first) > 0.1);
}

TEST_CASE("memsizer: keys from the input need heads that divide the width") {
  CHECK_NOTHROW(MixerInstance({"memsizer", 24, 5, {}}));
  CHECK_THROWS_AS(MixerInstance({"memsizer", 24, 5, {{"keys", "input"}}}), UsageError);
}
