#include "exchange/export_model.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "exchange/import_model.h"

using namespace quipu;
using quipu_test::read_whole;
using quipu_test::TemporaryFolder;

namespace {

ModelConfig small(const std::string& mixer, std::map<std::string, std::string> options = {}) {
  ModelConfig config;
  config.vocab = 19;
  config.dim = 12;
  config.layers = 2;
  config.length = 11;
  config.mixer = mixer;
  config.options = std::move(options);
  return config;
}

/// Every architecture that is written and read, with options off their usual values.
std::vector<ModelConfig> models() {
  std::vector<ModelConfig> all;
  const auto add = [&](ModelConfig config, Index heads = 3) -> ModelConfig& {
    config.heads = heads;
    return all.emplace_back(std::move(config));
  };
  add(small("rwkv4"), 0);
  for (const char* version : {"5.1", "r3r2", "5.2"})
    add(small("rwkv5", {{"rwkv5.version", version}, {"rwkv5.groupnorm_eps", "1e-05"}}));
  add(small("rwkv6", {{"rwkv6.mix_low_rank_dim", "4"}, {"rwkv6.decay_low_rank_dim", "5"}}));
  add(small("rwkv7", {{"rwkv7.decay_low_rank_dim", "4"},
                      {"rwkv7.a_low_rank_dim", "5"},
                      {"rwkv7.v_low_rank_dim", "6"},
                      {"rwkv7.gate_low_rank_dim", "7"}}));
  ModelConfig& gpt2 = add(small("attention", {{"mlp.hidden", "20"}}));
  apply_preset(gpt2, "gpt2");
  ModelConfig& llama = add(small("attention", {{"attention.kv_heads", "1"}, {"attention.rope_base", "500000"}}));
  apply_preset(llama, "transformer++");
  ModelConfig& mistral = add(small("attention", {{"attention.window", "5"}}));
  apply_preset(mistral, "transformer++");
  add(small("gsa", {{"gsa.slots", "5"}, {"gsa.use_short_conv", "true"}, {"gsa.conv_size", "3"}}));
  add(small("gla", {{"gla.gate_low_rank_dim", "16"}, {"gla.norm_eps", "1e-05"}}));
  add(small("retnet", {{"retnet.use_short_conv", "true"}}));
  add(small("hgrn2", {{"hgrn2.expand_ratio", "4"}, {"hgrn2.use_short_conv", "true"}, {"hgrn2.conv_size", "3"}}), 0);
  add(small("deltanet", {{"deltanet.use_gate", "true"}, {"deltanet.allow_neg_eigval", "true"}}));
  add(small("gated_deltanet", {{"gated_deltanet.head_dim", "4"}, {"gated_deltanet.num_v_heads", "6"}}));
  add(small("abc", {{"abc.slots", "5"}, {"abc.use_rope", "false"}}));
  add(small("mamba", {{"mamba.d_state", "5"}}), 0);
  add(small("mamba2", {{"mamba2.headdim", "4"}, {"mamba2.d_state", "5"}, {"mamba2.ngroups", "2"}}), 0);
  return all;
}

std::vector<float> logits_of(const LanguageModel& model) {
  const Tensor logits({1, model.vocab()});
  Scratch scratch;
  ModelState state = model.initial_state(1);
  for (const std::int32_t token : {3, 1, 4, 1, 5}) model.step(std::span(&token, 1), state, scratch, logits.matrix());
  return {logits.span().begin(), logits.span().end()};
}

}  // namespace

TEST_CASE("a model that was written and read is the same, and written again gives the same bytes") {
  for (const ModelConfig& config : models()) {
    INFO(config.mixer);
    const TemporaryFolder folder;
    LanguageModel model(config, false);
    model.parameters().initialise(7);
    for (const auto& entry : model.parameters().all())  // what the file holds: single precision
      for (Real& x : entry.parameter->value().span()) x = static_cast<float>(x);
    const std::string first = folder / "first", second = folder / "second";
    export_model(model, first);
    const ImportedModel imported = import_model(*open_tensor_source(first));
    const ModelConfig &a = model.config(), &b = imported.model->config();
    CHECK(a.options == b.options);
    CHECK(a.norm_eps == b.norm_eps);
    CHECK(a.head == b.head);
    const auto entries = model.parameters().all(), read = imported.model->parameters().all();
    REQUIRE(entries.size() == read.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      INFO(entries[i].name);
      CHECK(std::ranges::equal(entries[i].parameter->value().span(), read[i].parameter->value().span()));
    }
    CHECK(logits_of(model) == logits_of(*imported.model));
    export_model(*imported.model, second);
    CHECK(read_whole(first + "/model.safetensors") == read_whole(second + "/model.safetensors"));
    CHECK(read_whole(first + "/config.json") == read_whole(second + "/config.json"));
  }
}

TEST_CASE("what no other program has is refused, with what is in the way") {
  const TemporaryFolder folder;
  const LanguageModel aft(small("aft"), false);
  CHECK_THROWS_WITH_AS(export_model(aft, folder / "aft"), doctest::Contains("because of the mixer aft"), UsageError);
  const LanguageModel odd(small("gla", {{"gla.gate_logit_normalizer", "2"}}), false);
  CHECK_THROWS_WITH_AS(export_model(odd, folder / "odd"), doctest::Contains("gla.gate_logit_normalizer=2"), UsageError);
}
