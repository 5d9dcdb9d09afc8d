#include "train/model_checkpoint.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab = 9;
  config.dim = 8;
  config.layers = 2;
  config.heads = 2;
  config.mixer = "gsa,attention";
  config.options = {{"gsa.slots", "3"}};
  return config;
}

CheckpointFacts facts_of(const LanguageModel& model) { return {to_json(model.config()), "", {"bytes", {}}, {}, {}}; }

}  // namespace

TEST_CASE("model checkpoint: a file alone gives the model back") {
  const TemporaryFolder folder;
  LanguageModel model(tiny_config(), true);
  model.parameters().initialise(3);
  Optimizer optimizer({}, optimizer_groups(model.parameters()));
  save_model(folder / "m.h5", facts_of(model), model.parameters(), &optimizer, nullptr);

  const auto loaded = load_model(folder / "m.h5");
  CHECK(loaded->config() == model.config());
  CHECK(loaded->parameters().gradients().empty());
  const auto a = model.parameters().values(), b = loaded->parameters().values();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(static_cast<float>(a[i]) == static_cast<float>(b[i]));
  CHECK(digest_of(model.parameters()) == CheckpointFile(folder / "m.h5").parameter_digest());
  CHECK(digest_of(loaded->parameters()) == digest_of(model.parameters()));
}

TEST_CASE("model checkpoint: the optimizer comes back, array by array") {
  const TemporaryFolder folder;
  LanguageModel model(tiny_config(), true);
  model.parameters().initialise(3);
  const auto groups = optimizer_groups(model.parameters());
  Optimizer optimizer({}, groups), other({}, groups);
  for (std::size_t i = 0; const auto& entry : model.parameters().trainable())
    for (Index at = entry.begin; at < entry.end; ++at)
      model.parameters().gradients()[static_cast<std::size_t>(at)] = static_cast<Real>(std::sin(++i));
  optimizer.step(model.parameters().values(), model.parameters().gradients(), 1e-3);
  save_model(folder / "m.h5", facts_of(model), model.parameters(), &optimizer, nullptr);
  read_optimizer(CheckpointFile(folder / "m.h5"), model.parameters(), other);
  CHECK(other.steps_taken() == 1);
  for (std::size_t a = 0; a < 2; ++a) {
    const auto mine = optimizer.state()[a].values, theirs = other.state()[a].values;
    for (std::size_t i = 0; i < mine.size(); ++i) CHECK(static_cast<float>(mine[i]) == static_cast<float>(theirs[i]));
  }
  Optimizer nag({.kind = OptimizerKind::kNag}, groups);
  CHECK_THROWS_WITH_AS(read_optimizer(CheckpointFile(folder / "m.h5"), model.parameters(), nag),
                       doctest::Contains("m.h5: has a optimizer array v/"), InputError);
  save_model(folder / "bare.h5", facts_of(model), model.parameters(), nullptr, nullptr);
  CHECK_THROWS_WITH_AS(
      read_optimizer(CheckpointFile(folder / "bare.h5"), model.parameters(), other),
      doctest::Contains("bare.h5: holds a model without its optimizer; start from its weights with --init"),
      InputError);
}

TEST_CASE("model checkpoint: arrays that are not the model's are named") {
  const TemporaryFolder folder;
  LanguageModel model(tiny_config(), false);
  model.parameters().initialise(3);
  save_model(folder / "m.h5", facts_of(model), model.parameters(), nullptr, nullptr);
  const CheckpointFile file(folder / "m.h5");

  ModelConfig slots = tiny_config();
  slots.options = {{"gsa.slots", "4"}};
  LanguageModel other(slots, false);
  CHECK_THROWS_WITH_AS(read_parameters(file, other.parameters()),
                       doctest::Contains("is [6, 8], the model's is [8, 8]; give a checkpoint"), InputError);
  ModelConfig deep = tiny_config();
  deep.layers = 4;
  LanguageModel deeper(deep, false);
  CHECK_THROWS_WITH_AS(read_parameters(file, deeper.parameters()),
                       doctest::Contains("m.h5: lacks the parameter layers."), InputError);
  ModelConfig tied = tiny_config();
  tied.head = "tied";
  LanguageModel headless(tied, false);
  CHECK_THROWS_WITH_AS(read_parameters(file, headless.parameters()),
                       doctest::Contains("m.h5: has a parameter head.weight [9, 8], which the model lacks"),
                       InputError);

  CheckpointFacts broken = facts_of(model);
  broken.config = "{}";
  save_model(folder / "broken.h5", broken, model.parameters(), nullptr, nullptr);
  CHECK_THROWS_AS(load_model(folder / "broken.h5"), InputError);
}

TEST_CASE("model checkpoint: groups follow decay and rate") {
  LanguageModel model(tiny_config(), false);
  const auto groups = optimizer_groups(model.parameters());
  Index last = 0;
  for (const ParameterGroup& group : groups) {
    CHECK(group.begin >= last);
    last = group.end;
  }
  CHECK(last == model.parameters().count());
  for (const auto& entry : model.parameters().trainable()) {
    bool found = false;
    for (const ParameterGroup& group : groups)
      if (group.begin <= entry.begin && entry.end <= group.end) {
        found = true;
        CHECK(group.decay == entry.parameter->traits().decay);
        CHECK(group.lr_scale == entry.parameter->traits().lr_scale);
      }
    CHECK(found);
  }
}

TEST_CASE("model checkpoint: a carried state comes back") {
  const TemporaryFolder folder;
  LanguageModel model(tiny_config(), false);
  model.parameters().initialise(3);
  ModelState state = model.initial_state(2);
  const Layout layout = Layout::plain(2, 5);
  Tape tape(false);
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 0, 1};
  model.forward(tape, tokens, {.layout = layout}, state);
  save_model(folder / "m.h5", facts_of(model), model.parameters(), nullptr, &state);
  ModelState loaded = model.initial_state(2);
  read_carried_state(CheckpointFile(folder / "m.h5"), loaded);
  Index compared = 0;
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer)
    for (std::size_t i = 0; i < state.layers[layer].leaves().size(); ++i) {
      const StateLeaf &a = state.layers[layer].leaves()[i], &b = loaded.layers[layer].leaves()[i];
      if (a.is_integer()) continue;
      REQUIRE(a.value.shape() == b.value.shape());
      for (Index j = 0; j < a.value.value().count(); ++j, ++compared)
        CHECK(static_cast<float>(a.value.value().data()[j]) == static_cast<float>(b.value.value().data()[j]));
    }
  CHECK(compared > 100);
}
