// Layers of the published implementations: outputs, final states and all gradients.
#include <set>

#include "mixers/golden_layer.h"

using namespace quipu;

namespace {

using Names = std::map<std::string, PublishedName>;

const Names kGpt2Names{{"q_proj.weight", {"c_attn.weight", 0, 3}}, {"k_proj.weight", {"c_attn.weight", 1, 3}},
                       {"v_proj.weight", {"c_attn.weight", 2, 3}}, {"q_proj.bias", {"c_attn.bias", 0, 3}},
                       {"k_proj.bias", {"c_attn.bias", 1, 3}},     {"v_proj.bias", {"c_attn.bias", 2, 3}},
                       {"o_proj.weight", {"c_proj.weight"}},       {"o_proj.bias", {"c_proj.bias"}}};
const Names kLlamaNames{{"q_proj.weight", {"wq.weight"}},
                        {"k_proj.weight", {"wk.weight"}},
                        {"v_proj.weight", {"wv.weight"}},
                        {"o_proj.weight", {"wo.weight"}}};

/// Mixers whose layers need more than their file says: they have a test of their own.
const std::set<std::string> kOwnTest{
    "aft",
    "deltanet",
    "gated_deltanet",
    "gla",
    "hgrn2",
    "linear_attention",
    "linformer",
    "mamba",
    "mamba2",
    "memsizer",
    "retnet",
    "rfa",
    "rwkv4",
    "rwkv5",
    "rwkv6",
    "rwkv7",
    "synthesizer",
    "t2r",
    "transformer_xl",
};

}  // namespace

TEST_CASE("golden: every mixer with a file of its own name") {
  for (const MixerEntry& entry : registry()) {
    if (!GoldenFile::exists(entry.name) || kOwnTest.contains(entry.name)) continue;
    const GoldenFile file(entry.name);
    for (const std::string& name : file.cases()) {
      if (file.at(name).text("level") != "layer") continue;
      check_layer(entry.name, name, entry.name);
    }
  }
}

TEST_CASE("golden: linear attention of flash-linear-attention") {
  for (const auto& [name, normalise] : {std::pair{"fla_layer_normalised", "true"}, {"fla_layer_unnormalised", "false"}})
    check_layer("linear_attention", name, "linear_attention",
                {.options = {{"variant", "fla"}, {"normalise", normalise}}});
}

TEST_CASE("golden: GPT-2's attention") {
  for (const char* name : {"attn_T17", "attn_T64"})
    check_layer("softmax_attention", name, "attention",
                {.options = {{"rope", "none"}, {"bias", "true"}}, .names = kGpt2Names});
}

TEST_CASE("golden: Llama's attention, with grouped heads and interleaved rotation") {
  for (const char* name : {"attn_T17", "attn_gqa_T64"})
    check_layer("transformer_pp", name, "attention", {.options = {{"rope", "interleaved"}}, .names = kLlamaNames});
}

TEST_CASE("golden: attention over a cache") {
  const GoldenCase golden = GoldenFile("softmax_attention").at("kv_cache");
  MixerInstance m({"attention", 16, 2, {{"rope", "none"}, {"bias", "true"}}});
  for (const auto& entry : m.parameters->all()) {
    const PublishedName& published = kGpt2Names.at(entry.name);
    const Tensor value = tensor_of(part_of(golden.tensor("param/" + published.name), published));
    std::copy_n(value.data(), value.count(), entry.parameter->value().data());
  }
  m.parameters->zero_gradients();
  Tape tape(true);
  const Var prefix = Var::leaf(tensor_of(golden.tensor("input/x_prefix")));
  const Var x = Var::leaf(tensor_of(golden.tensor("input/x")));
  State state = m.mixer->initial_state(2);
  const Layout first = Layout::plain(2, prefix.extent(1)), second = Layout::plain(2, x.extent(1));
  m.mixer->forward(tape, prefix, {.layout = first}, state);
  const Var y = m.mixer->forward(tape, x, {.layout = second}, state);
  CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
  // The file holds [B,H,T,K]; the cache [B,n,H,K].
  for (const auto& [leaf, name] : {std::pair{0, "final_state/k"}, {1, "final_state/v"}}) {
    const GoldenTensor wanted = golden.tensor(name);
    const Tensor& cache = state.real(static_cast<std::size_t>(leaf)).value();
    const Index heads = wanted.shape[1], tokens = wanted.shape[2], width = wanted.shape[3];
    std::vector<double> held;
    for (Index b = 0; b < 2; ++b)
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < tokens; ++t)
          for (Index c = 0; c < width; ++c)
            held.push_back(static_cast<double>(cache.data()[((b * cache.extent(1) + t) * heads + h) * width + c]));
    CHECK(relative_error(held, wanted.values) < kOutputTolerance);
  }
  tape.backward(y, tensor_of(golden.tensor("cotangent")));
  CHECK(relative_error(x.gradient()->sum(), golden.tensor("grad/input/x")) < kGradientTolerance);
  CHECK(relative_error(prefix.gradient()->sum(), golden.tensor("grad/input/x_prefix")) < kGradientTolerance);
}
