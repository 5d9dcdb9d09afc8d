#include "models/language_model.h"

#include <doctest/doctest.h>

#include <map>

#include "mixers/instance.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kSame = 1e-10;
#else
constexpr double kSame = 1e-4;
#endif

ModelConfig small(const std::string& mixer) {
  ModelConfig c;
  c.vocab = 19, c.dim = 24, c.layers = 4, c.heads = 3, c.length = 80, c.mixer = mixer;
  return c;
}

std::vector<ModelConfig> configs() {
  std::vector<ModelConfig> all;
  for (const MixerEntry& entry : registry())
    if (!entry.channel) all.push_back(small(entry.name));
  for (const char* pattern : {"3xgsa,attention", "rwkv7,mamba"}) all.push_back(small(pattern));
  for (const char* memory : {"5", "40"}) {  // several segments
    all.push_back(small("transformer_xl"));
    all.back().length = 16;
    all.back().options = {{"memory", memory}, {"pre_norm", memory == std::string("5") ? "true" : "false"}};
  }
  for (const char* preset : {"gpt2", "transformer++"}) {
    all.push_back(small("attention"));
    apply_preset(all.back(), preset);
  }
  // Memory tokens around segments of 11 tokens.
  const std::tuple<const char*, const char*, const char*> memories[] = {
      {"transformer_xl", "", ""},         {"transformer_xl", "causal", "fresh"},
      {"gsa", "causal", "fresh"},         {"rwkv7", "causal", "carried"},
      {"attention", "blocks", "carried"}, {"attention", "blocks", "fresh"},
      {"linformer", "causal", "fresh"},   {"gsa,attention", "", ""}};
  for (const auto& [mixer, mask, state] : memories) {
    ModelConfig c = small(mixer);
    c.length = 11, c.memory_tokens = 3, c.memory_mask = mask, c.memory_state = state;
    all.push_back(c);
  }
  return all;
}

std::vector<std::int32_t> tokens_for(Index n, std::uint64_t site = 0) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  const Rng rng(5, 0, site);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(rng.below(i, 19));
  return tokens;
}

/// Loss and flat gradients of one window of two lanes.
std::pair<double, std::vector<Real>> gradients(LanguageModel& model, double dropout) {
  const Layout layout{2, 75, {75, 70}, {{0, 40}, {0}}};
  model.parameters().zero_gradients();
  Tape tape(true);
  ModelState state = model.initial_state(2);
  const auto tokens = tokens_for(150), targets = tokens_for(150, 1);
  const Context context{.layout = layout, .training = true, .seed = 3, .step = 7, .dropout = dropout};
  const Var hidden = model.forward(tape, tokens, context, state);
  const LossOutput loss = model.loss(tape, hidden, targets, {});
  tape.backward(loss.loss);
  const auto g = model.parameters().gradients();
  return {loss.nll_sum_nats, {g.begin(), g.end()}};
}

}  // namespace

TEST_CASE("language model: checkpointed gradients are bit-identical to plain ones") {
  for (const ModelConfig& config : configs())
    for (const double dropout : {0.0, 0.2}) {
      INFO(config.mixer);
      LanguageModel model(config, true);
      model.parameters().initialise(2);
      const auto plain = gradients(model, dropout);
      model.set_checkpoint_activations(true);
      const auto checkpointed = gradients(model, dropout);
      CHECK(plain.first == checkpointed.first);
      CHECK(plain.second == checkpointed.second);
      CHECK(std::any_of(plain.second.begin(), plain.second.end(), [](Real g) { return g != 0; }));
    }
}

TEST_CASE("language model: pieces and steps give the logits of one piece") {
  for (const ModelConfig& config : configs()) {
    INFO(config.mixer << " " << config.positions);
    LanguageModel model(config, false);
    model.parameters().initialise(2);
    const Index length = 70;
    const auto tokens = tokens_for(2 * length);
    const auto run = [&](Index begin, Index end, ModelState& state) {
      std::vector<std::int32_t> part;
      for (Index b = 0; b < 2; ++b)
        part.insert(part.end(), tokens.begin() + b * length + begin, tokens.begin() + b * length + end);
      const Layout layout = Layout::plain(2, end - begin);
      Tape tape(false);
      const Var hidden = model.forward(tape, part, {.layout = layout}, state);
      Tensor logits({2, end - begin, 19});
      model.logits_into(logits.matrix(), hidden.value().matrix());
      return logits;
    };
    ModelState whole = model.initial_state(2), pieces = whole, steps = whole;
    const Tensor y = run(0, length, whole);
    CHECK(relative_error(run(0, 33, pieces), tokens_of(y, 0, 33)) < kSame);
    CHECK(relative_error(run(33, length, pieces), tokens_of(y, 33, length)) < kSame);
    Scratch scratch;
    Tensor stepped({2, length, 19}), logits({2, 19});
    for (Index t = 0; t < length; ++t) {
      const std::vector<std::int32_t> now{tokens[static_cast<std::size_t>(t)],
                                          tokens[static_cast<std::size_t>(length + t)]};
      model.step(now, steps, scratch, logits.matrix());
      for (Index b = 0; b < 2; ++b) std::copy_n(logits.data() + b * 19, 19, stepped.data() + (b * length + t) * 19);
    }
    CHECK(relative_error(stepped, y) < kSame);
    if (config.memory_tokens == 0) CHECK(whole.position == std::vector<std::int64_t>{length, length});
    for (const ModelState* other : {&pieces, &steps}) {
      CHECK(other->position == whole.position);
      for (std::size_t i = 0; i < whole.layers.size(); ++i)
        CHECK(state_error(other->layers[i], whole.layers[i]) < kSame);
    }
    CHECK(model.state_bytes(length) * 2 == model.held_bytes(whole));
  }
}

TEST_CASE("language model: a state taken over stays in its storage, and copies of it stay what they were") {
  LanguageModel model(small("gsa,attention"), false);
  model.parameters().initialise(4);
  const auto read = [&](ModelState& state, std::vector<std::int32_t> tokens) {
    Tape tape(false);
    model.forward(tape, tokens, {.layout = Layout::plain(1, static_cast<Index>(tokens.size()))}, state);
  };
  ModelState kept = model.initial_state(1);
  read(kept, {1, 2, 3});
  const ModelState copy = kept;
  ModelState next = kept;
  read(next, {4, 5});
  const auto values = [](const ModelState& state, std::size_t layer) {
    const auto span = state.layers[layer].real(0).value().span();
    return std::vector<Real>(span.begin(), span.end());
  };
  const auto before = values(kept, 0), wanted = values(next, 0), wanted_cache = values(next, 2);
  REQUIRE(before != wanted);
  kept.take(next);
  CHECK(values(kept, 0) == wanted);
  CHECK(values(kept, 2) == wanted_cache);  // attention's cache has grown
  CHECK(kept.position == next.position);
  CHECK(values(copy, 0) == before);
  const Real* const storage = kept.layers[0].real(0).value().data();
  read(next, {6});
  kept.take(std::move(next));
  CHECK(kept.layers[0].real(0).value().data() == storage);
  CHECK(values(kept, 0) != wanted);
  ModelState empty;
  empty.take(copy);
  CHECK(values(empty, 0) == before);
  CHECK(empty.position == copy.position);
}

TEST_CASE("language model: the configuration that it gives back builds the same model") {
  for (const ModelConfig& config : configs()) {
    const LanguageModel model(config, false);
    const ModelConfig resolved = config_from_json(to_json(model.config()));
    CHECK(resolved == model.config());
    const LanguageModel again(resolved, false);
    CHECK(again.config() == resolved);
    CHECK(again.parameters().count() == model.parameters().count());
  }
}

TEST_CASE("language model: what cannot be is refused in one line") {
  const auto refuse = [](auto change, const std::string& part) {
    ModelConfig config = small("gsa");
    change(config);
    try {
      LanguageModel model(config, false);
      FAIL("was accepted");
    } catch (const UsageError& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(part) != std::string::npos);
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    }
  };
  refuse([](ModelConfig& c) { c.heads = 5; }, "--heads 5");
  refuse([](ModelConfig& c) { c.mixer = "gsb"; }, "gsb");
  refuse([](ModelConfig& c) { c.mixer = "2xgsa,attention"; }, "every 3 layers");
  refuse([](ModelConfig& c) { c.mixer = "gsa,,gsa"; }, "pattern");
  refuse([](ModelConfig& c) { c.options["slot"] = "4"; }, "slot=4");
  refuse([](ModelConfig& c) { c.options["gsa.slots"] = "0"; }, "below 1");
  refuse([](ModelConfig& c) { c.options["slots"] = "many"; }, "not a number");
  refuse([](ModelConfig& c) { c.norm = "batchnorm"; }, "batchnorm");
  refuse([](ModelConfig& c) { c.channel_mixer = "gsa"; }, "gsa");
  refuse([](ModelConfig& c) { c.positions = "rotary"; }, "rotary");
  refuse([](ModelConfig& c) { c.norm_place = "middle"; }, "middle");
  refuse([](ModelConfig& c) { c.memory_tokens = 2, c.memory_mask = "blocks"; }, "--memory-mask blocks");
  refuse([](ModelConfig& c) { c.memory_tokens = 2, c.memory_state = "kept"; }, "--memory-state kept");
  CHECK_THROWS_AS(config_from_json("{\"dim\": 3}"), InputError);
  CHECK_THROWS_AS(config_from_json("not json"), InputError);
}

TEST_CASE("language model: published blocks") {
  struct Published {
    const char* file;
    std::string channel, norm;
    std::map<std::string, std::string> options;
    std::map<std::string, std::pair<std::string, Index>> names;  // ours -> theirs, third of it (-1: all)
  };
  const std::vector<Published> published{{"softmax_attention",
                                          "mlp",
                                          "layernorm",
                                          {{"attention.rope", "none"}, {"attention.bias", "true"}},
                                          {{"mixer_norm.weight", {"ln_1.weight", -1}},
                                           {"mixer_norm.bias", {"ln_1.bias", -1}},
                                           {"mixer.q_proj.weight", {"attn.c_attn.weight", 0}},
                                           {"mixer.k_proj.weight", {"attn.c_attn.weight", 1}},
                                           {"mixer.v_proj.weight", {"attn.c_attn.weight", 2}},
                                           {"mixer.q_proj.bias", {"attn.c_attn.bias", 0}},
                                           {"mixer.k_proj.bias", {"attn.c_attn.bias", 1}},
                                           {"mixer.v_proj.bias", {"attn.c_attn.bias", 2}},
                                           {"mixer.o_proj.weight", {"attn.c_proj.weight", -1}},
                                           {"mixer.o_proj.bias", {"attn.c_proj.bias", -1}},
                                           {"channel_norm.weight", {"ln_2.weight", -1}},
                                           {"channel_norm.bias", {"ln_2.bias", -1}},
                                           {"channel.c_fc.weight", {"mlp.c_fc.weight", -1}},
                                           {"channel.c_fc.bias", {"mlp.c_fc.bias", -1}},
                                           {"channel.c_proj.weight", {"mlp.c_proj.weight", -1}},
                                           {"channel.c_proj.bias", {"mlp.c_proj.bias", -1}}}},
                                         {"transformer_pp",
                                          "swiglu",
                                          "rmsnorm",
                                          {{"attention.rope", "interleaved"}, {"swiglu.hidden", "40"}},
                                          {{"mixer_norm.weight", {"attention_norm.weight", -1}},
                                           {"mixer.q_proj.weight", {"attention.wq.weight", -1}},
                                           {"mixer.k_proj.weight", {"attention.wk.weight", -1}},
                                           {"mixer.v_proj.weight", {"attention.wv.weight", -1}},
                                           {"mixer.o_proj.weight", {"attention.wo.weight", -1}},
                                           {"channel_norm.weight", {"ffn_norm.weight", -1}},
                                           {"channel.gate_proj.weight", {"feed_forward.w1.weight", -1}},
                                           {"channel.down_proj.weight", {"feed_forward.w2.weight", -1}},
                                           {"channel.up_proj.weight", {"feed_forward.w3.weight", -1}}}}};
  for (const Published& p : published) {
    INFO(p.file);
    const GoldenCase golden = GoldenFile(p.file).at("block_T17");
    ModelConfig config;
    config.vocab = 2, config.dim = 16, config.layers = 1, config.heads = static_cast<Index>(golden.number("num_heads"));
    config.mixer = "attention", config.channel_mixer = p.channel, config.norm = p.norm, config.options = p.options;
    LanguageModel model(config, true);
    const auto theirs = [&](const std::string& group, const std::string& name) {
      const auto& [path, third] = p.names.at(name.substr(std::string("layers.0.").size()));
      std::vector<double> values = golden.tensor(group + path).values;
      if (third >= 0) {
        const auto n = static_cast<Index>(values.size()) / 3;
        values = {values.begin() + third * n, values.begin() + (third + 1) * n};
      }
      return values;
    };
    const auto ours = [](const std::string& name) { return name.starts_with("layers.0."); };
    for (const auto& e : model.parameters().trainable())
      if (ours(e.name)) {
        const Tensor value = Tensor::from(e.parameter->shape(), theirs("param/", e.name));
        std::copy_n(value.data(), value.count(), e.parameter->value().data());
      }
    const Var x = Var::leaf(tensor_of(golden.tensor("input/x")));
    ModelState state = model.initial_state(2);
    const Layout layout = Layout::plain(2, 17);
    Tape tape(true);
    const Block& block = model.blocks()[0];
    Var y = x;
    for (Index line = 0; line < block.lines(); ++line)
      y = block.forward(tape, line, y, {.layout = layout}, state.layers[static_cast<std::size_t>(line)]);
    CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
    tape.backward(y, tensor_of(golden.tensor("cotangent")));
    CHECK(relative_error(x.gradient()->sum(), golden.tensor("grad/input/x")) < kGradientTolerance);
    for (const auto& e : model.parameters().trainable()) {
      CAPTURE(e.name);
      if (!ours(e.name)) continue;
      const auto g = model.parameters().gradients().subspan(static_cast<std::size_t>(e.begin),
                                                            static_cast<std::size_t>(e.end - e.begin));
      // the gradient of a key's bias alone is 0 but for rounding: as a share of the published array
      const std::string& path = p.names.at(e.name.substr(std::string("layers.0.").size())).first;
      CHECK(relative_error(g, theirs("grad/param/", e.name), largest_element(golden.tensor("grad/param/" + path))) <
            kGradientTolerance);
    }
  }
}
