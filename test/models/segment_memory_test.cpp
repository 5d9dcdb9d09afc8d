#include "models/segment_memory.h"

#include <doctest/doctest.h>

#include "models/segment_golden.h"

using namespace quipu;

namespace {

PublishedPart decoder_name(const std::string& name) {
  static const std::map<std::string, PublishedPart> known{{"embedding.weight", {"wte.weight"}},
                                                          {"positions.weight", {"wpe.weight"}},
                                                          {"norm.weight", {"ln_f.weight"}},
                                                          {"norm.bias", {"ln_f.bias"}}};
  static const std::map<std::string, PublishedPart> in_layer{{"mixer_norm.", {"ln_1."}},
                                                             {"mixer.q_proj.", {"attn.c_attn.", 0, 3}},
                                                             {"mixer.k_proj.", {"attn.c_attn.", 1, 3}},
                                                             {"mixer.v_proj.", {"attn.c_attn.", 2, 3}},
                                                             {"mixer.o_proj.", {"attn.c_proj."}},
                                                             {"channel_norm.", {"ln_2."}},
                                                             {"channel.c_fc.", {"mlp.c_fc."}},
                                                             {"channel.c_proj.", {"mlp.c_proj."}}};
  if (name == "memory.weight") return {"memory_cell.memory"};
  const std::string model = "memory_cell.model.";
  if (const auto found = known.find(name); found != known.end()) return {model + found->second.path};
  for (const auto& [ours, theirs] : in_layer)
    if (const std::size_t at = name.find(ours); at != std::string::npos) {
      const std::string layer = name.substr(7, at - 7);  // "N."
      return {model + "h." + layer + theirs.path + name.substr(at + ours.size()), theirs.part, theirs.parts};
    }
  throw InternalError("test: no published name for {}", name);
}

ModelConfig decoder_config(const GoldenCase& golden) {
  ModelConfig config;
  apply_preset(config, "gpt2");
  config.vocab = static_cast<Index>(golden.number("vocab"));
  config.dim = static_cast<Index>(golden.number("d_model"));
  config.layers = static_cast<Index>(golden.number("n_layer"));
  config.heads = static_cast<Index>(golden.number("num_heads"));
  config.length = static_cast<Index>(golden.number("segment_size"));
  config.memory_tokens = static_cast<Index>(golden.number("num_mem_tokens"));
  return config;
}

}  // namespace

TEST_CASE("memory tokens: what a model remembers stays as large, unless its mixers' states are carried") {
  const auto memory_of = [](const std::string& mixer, Index tokens, const std::string& state) {
    ModelConfig config;
    config.vocab = 5, config.dim = 8, config.layers = 1, config.heads = 2, config.length = 4, config.mixer = mixer;
    config.positions = mixer == "attention" ? "learned" : "none";
    config.memory_tokens = tokens, config.memory_state = state;
    const LanguageModel model(config, false);
    if (model.memory() == Memory::fixed) CHECK(model.state_bytes(4000) == model.state_bytes(4));
    if (model.memory() == Memory::growing) CHECK(model.state_bytes(4000) > model.state_bytes(4));
    return model.memory();
  };
  CHECK(memory_of("attention", 0, "") == Memory::fixed_length);
  CHECK(memory_of("attention", 2, "fresh") == Memory::fixed);
  CHECK(memory_of("attention", 2, "carried") == Memory::growing);
  CHECK(memory_of("gsa", 2, "carried") == Memory::fixed);
  CHECK(memory_of("linformer", 0, "") == Memory::fixed_length);
  CHECK(memory_of("linformer", 2, "fresh") == Memory::fixed);
}

TEST_CASE("memory tokens: a published decoder around three segments") {
  const GoldenCase golden = GoldenFile("rmt").at("decoder_rmt");
  SegmentGolden published(golden, decoder_config(golden), decoder_name);
  LanguageModel& model = published.model();
  const Index lanes = 2, length = 21;
  const std::vector<std::int32_t> tokens = published.columns(0, length);
  std::vector<std::int32_t> targets(tokens.size(), kNoTarget);
  for (Index b = 0; b < lanes; ++b)
    std::copy_n(tokens.begin() + b * length + 1, length - 1, targets.begin() + b * length);

  const Layout layout = Layout::fresh(lanes, length);
  ModelState state = model.initial_state(lanes);
  Tape tape(true);
  const Var hidden = model.forward(tape, tokens, {.layout = layout}, state);
  Tensor logits({lanes, length, model.vocab()});
  model.logits_into(logits.matrix(), hidden.value().matrix());
  CHECK(relative_error(logits, golden.tensor("extra/logits")) < kOutputTolerance);
  const LossOutput loss = model.loss(tape, hidden, targets);
  CHECK(std::abs(static_cast<double>(loss.loss.value().data()[0]) - golden.tensor("output").values[0]) < 1e-5);
  tape.backward(loss.loss, Tensor::full(loss.loss.shape(), static_cast<Real>(golden.tensor("cotangent").values[0])));
  published.check_gradients();
}
