#include <doctest/doctest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "exchange/export_model.h"
#include "exchange/gguf_sample.h"
#include "exchange/import_model.h"

using namespace quipu;
using namespace quipu_test;
using Settings = std::map<std::string, std::string>;

namespace {

/// A random model, its published form, and what a GGUF file of it needs.
class Sample {
 public:
  Sample(const std::string& mixer, const Settings& options, Index heads, const char* preset = "") {
    ModelConfig config;
    config.vocab = 19, config.dim = 12, config.layers = 3, config.heads = heads, config.length = 11;
    config.mixer = mixer;
    if (*preset != '\0') apply_preset(config, preset);
    for (const auto& [key, value] : options) config.options[key] = value;
    model = std::make_unique<LanguageModel>(config, false);
    model->parameters().initialise(5);
    for (const auto& entry : model->parameters().all()) {  // nothing stays zero
      Real x = 1;
      for (Real& value : entry.parameter->value().span())
        value = static_cast<float>(value + static_cast<Real>(0.05) * (x = -x * static_cast<Real>(0.97)));
    }
    export_model(*model, folder.path());
    source = open_tensor_source(folder.path());
  }

  Array operator()(const std::string& name) const {
    const TensorInfo& tensor = source->tensor(name);
    return {{tensor.shape.begin(), tensor.shape.end()}, source->read(name)};
  }
  Published published() const {
    return [this](const std::string& name) { return (*this)(name); };
  }
  ImportedModel read(const GgufFile& file, const ImportOptions& import = {}) const {
    write_whole(folder / "model.gguf", file.bytes());
    return import_model(*open_tensor_source(folder / "model.gguf"), import);
  }

  TemporaryFolder folder;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<TensorSource> source;
};

std::vector<double> logits_of(const LanguageModel& model) {
  const Tensor logits({1, model.vocab()});
  Scratch scratch;
  ModelState state = model.initial_state(1);
  std::vector<double> all;
  for (const std::int32_t token : {3, 1, 4, 1, 5, 9}) {
    model.step(std::span(&token, 1), state, scratch, logits.matrix());
    all.insert(all.end(), logits.span().begin(), logits.span().end());
  }
  return all;
}

double difference(const LanguageModel& a, const LanguageModel& b) {
  const std::vector<double> x = logits_of(a), y = logits_of(b);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

std::string layer(const std::string& name, int i) { return in_layer(name, i); }

GgufFile llama_file(const Sample& s) {
  GgufFile file;
  file.text("general.architecture", "llama").count("llama.block_count", 3).count("llama.embedding_length", 12);
  file.count("llama.context_length", 11).count("llama.feed_forward_length", 24).count("llama.attention.head_count", 3);
  file.count("llama.attention.head_count_kv", 1).real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.real("llama.rope.freq_base", 500).count("llama.rope.dimension_count", 4).count("llama.vocab_size", 19);
  file.tensor("token_embd.weight", s("model.embed_tokens.weight"));
  file.tensor("output_norm.weight", s("model.norm.weight")).tensor("output.weight", s("lm_head.weight"));
  for (int i = 0; i < 3; ++i) {
    const auto of = [&](const char* name) { return s(layer("model.layers.{}.", i) + name); };
    const std::string blk = layer("blk.{}.", i);
    file.tensor(blk + "attn_norm.weight", of("input_layernorm.weight"));
    file.tensor(blk + "attn_q.weight", paired(of("self_attn.q_proj.weight"), 3));
    file.tensor(blk + "attn_k.weight", paired(of("self_attn.k_proj.weight"), 1));
    file.tensor(blk + "attn_v.weight", of("self_attn.v_proj.weight"));
    file.tensor(blk + "attn_output.weight", of("self_attn.o_proj.weight"));
    file.tensor(blk + "ffn_norm.weight", of("post_attention_layernorm.weight"));
    file.tensor(blk + "ffn_gate.weight", of("mlp.gate_proj.weight"));
    file.tensor(blk + "ffn_up.weight", of("mlp.up_proj.weight"));
    file.tensor(blk + "ffn_down.weight", of("mlp.down_proj.weight"));
  }
  return file;
}

const Settings kLlama{{"attention.kv_heads", "1"}, {"attention.rope_base", "500"}, {"swiglu.hidden", "24"}};

GgufFile gpt2_file(const Sample& s) {
  GgufFile file;
  file.text("general.architecture", "gpt2").count("gpt2.block_count", 3).count("gpt2.embedding_length", 12);
  file.count("gpt2.context_length", 11).count("gpt2.feed_forward_length", 48).count("gpt2.attention.head_count", 3);
  file.real("gpt2.attention.layer_norm_epsilon", 1e-5F).count("general.file_type", 0);
  file.tensor("token_embd.weight", s("transformer.wte.weight"));
  file.tensor("position_embd.weight", s("transformer.wpe.weight"));
  add_same(file, s.published(), "output_norm", "transformer.ln_f");
  for (int i = 0; i < 3; ++i) {
    const std::string h = layer("transformer.h.{}.", i), blk = layer("blk.{}.", i);
    add_same(file, s.published(), blk + "attn_norm", h + "ln_1");
    add_same(file, s.published(), blk + "ffn_norm", h + "ln_2");
    for (const auto& [theirs, published] : std::map<std::string, std::string>{{"attn_qkv", "attn.c_attn"},
                                                                              {"attn_output", "attn.c_proj"},
                                                                              {"ffn_up", "mlp.c_fc"},
                                                                              {"ffn_down", "mlp.c_proj"}}) {
      file.tensor(blk + theirs + ".weight", transposed(s(h + published + ".weight")));
      file.tensor(blk + theirs + ".bias", s(h + published + ".bias"));
    }
  }
  return file;
}

Array minus_exp(Array x) {
  for (float& value : x.values) value = -std::exp(value);
  return x;
}

GgufFile mamba_file(const Sample& s, bool second) {
  const std::string name = second ? "mamba2" : "mamba";
  GgufFile file;
  file.text("general.architecture", name).count(name + ".block_count", 3).count(name + ".embedding_length", 12);
  file.count(name + ".context_length", 1048576).count(name + ".feed_forward_length", 0);
  file.count(name + ".attention.head_count", 0).count(name + ".ssm.conv_kernel", 4).count(name + ".ssm.inner_size", 24);
  file.count(name + ".ssm.state_size", 5).count(name + ".ssm.time_step_rank", second ? 6 : 2);
  file.real(name + ".attention.layer_norm_rms_epsilon", 1e-5F);
  if (second) file.count(name + ".ssm.group_count", 2);
  if (!second) file.flag(name + ".ssm.dt_b_c_rms", false);
  file.tensor("token_embd.weight", s("backbone.embeddings.weight"));
  file.tensor("output_norm.weight", s("backbone.norm_f.weight"));
  for (int i = 0; i < 3; ++i) {
    const auto of = [&](const char* part) { return s(layer("backbone.layers.{}.", i) + part); };
    const std::string blk = layer("blk.{}.", i);
    file.tensor(blk + "attn_norm.weight", of("norm.weight"));
    file.tensor(blk + "ssm_in.weight", of("mixer.in_proj.weight"));
    file.tensor(blk + "ssm_conv1d.weight", squeezed(of("mixer.conv1d.weight")));
    file.tensor(blk + "ssm_conv1d.bias", of("mixer.conv1d.bias"));
    file.tensor(blk + "ssm_out.weight", of("mixer.out_proj.weight"));
    if (second) {
      file.tensor(blk + "ssm_a", in_shape(minus_exp(of("mixer.A_log")), {6, 1}));
      file.tensor(blk + "ssm_d", in_shape(of("mixer.D"), {6, 1}));
      file.tensor(blk + "ssm_dt.bias", of("mixer.dt_bias"));
      file.tensor(blk + "ssm_norm.weight", in_shape(of("mixer.norm.weight"), {2, 12}));
    } else {
      file.tensor(blk + "ssm_a", minus_exp(of("mixer.A_log"))).tensor(blk + "ssm_d", of("mixer.D"));
      file.tensor(blk + "ssm_x.weight", of("mixer.x_proj.weight"));
      file.tensor(blk + "ssm_dt.weight", of("mixer.dt_proj.weight"));
      file.tensor(blk + "ssm_dt.bias", of("mixer.dt_proj.bias"));
    }
  }
  return file;
}

/// What RWKV-6's and RWKV-7's files have alike.
GgufFile rwkv_file(const Sample& s, const std::string& name) {
  GgufFile file;
  file.text("general.architecture", name).count(name + ".block_count", 3).count(name + ".embedding_length", 12);
  file.count(name + ".wkv.head_size", 4).real(name + ".attention.layer_norm_epsilon", 1e-5F);
  file.count(name + ".attention.head_count", 0).count(name + ".context_length", 1048576);
  file.tensor("token_embd.weight", s("emb.weight")).tensor("output.weight", s("head.weight"));
  add_same(file, s.published(), "token_embd_norm", "blocks.0.ln0");
  add_same(file, s.published(), "output_norm", "ln_out");
  for (int i = 0; i < 3; ++i) {
    const std::string blk = layer("blk.{}.", i), of = layer("blocks.{}.", i);
    add_same(file, s.published(), blk + "attn_norm", of + "ln1");
    add_same(file, s.published(), blk + "attn_norm_2", of + "ln2");
    add_same(file, s.published(), blk + "time_mix_ln", of + "att.ln_x");
    for (const char* both : {"receptance", "key", "value"})
      file.tensor(blk + "time_mix_" + both + ".weight", s(of + "att." + both + ".weight"));
    file.tensor(blk + "channel_mix_key.weight", s(of + "ffn.key.weight"));
  }
  return file;
}

GgufFile rwkv6_file(const Sample& s, bool fused, std::uint32_t rescale) {
  GgufFile file = rwkv_file(s, "rwkv6");
  file.count("rwkv6.time_mix_extra_dim", 4).count("rwkv6.time_decay_extra_dim", 5);
  file.count("rwkv6.rescale_every_n_layers", rescale);
  for (int i = 0; i < 3; ++i) {
    const std::string mix = layer("blk.{}.time_mix_", i), channel = layer("blk.{}.channel_mix_", i);
    const auto att = [&](const std::string& name) { return s(layer("blocks.{}.att.", i) + name); };
    const auto ffn = [&](const std::string& name) { return s(layer("blocks.{}.ffn.", i) + name); };
    const double half = rescale == 0 ? 1 : std::pow(0.5, i / static_cast<int>(rescale));
    file.tensor(mix + "w1.weight", transposed(att("time_maa_w1")))
        .tensor(mix + "w2.weight", transposed(att("time_maa_w2")));
    file.tensor(mix + "decay_w1.weight", transposed(att("time_decay_w1")));
    file.tensor(mix + "decay_w2.weight", transposed(att("time_decay_w2")));
    file.tensor(mix + "decay.weight", squeezed(att("time_decay"))).tensor(mix + "first.weight", att("time_faaaa"));
    file.tensor(mix + "gate.weight", att("gate.weight"))
        .tensor(mix + "output.weight", times(att("output.weight"), half));
    file.tensor(mix + "lerp_x.weight", squeezed(att("time_maa_x")));
    std::vector<Array> lerps;
    for (const std::string letter : {"w", "k", "v", "r", "g"}) {
      lerps.push_back(squeezed(att("time_maa_" + letter)));
      if (!fused) file.tensor(mix + "lerp_" + letter + ".weight", lerps.back());
    }
    if (fused) file.tensor(mix + "lerp_fused.weight", stacked(lerps));
    file.tensor(channel + "lerp_k.weight", squeezed(ffn("time_maa_k")));
    file.tensor(channel + "lerp_r.weight", squeezed(ffn("time_maa_r")));
    file.tensor(channel + "receptance.weight", ffn("receptance.weight"));
    file.tensor(channel + "value.weight", times(ffn("value.weight"), half));
  }
  return file;
}

GgufFile rwkv7_file(const Sample& s) {
  GgufFile file = rwkv_file(s, "rwkv7");
  file.count("rwkv7.attention.decay_lora_rank", 4).count("rwkv7.attention.iclr_lora_rank", 5);
  file.count("rwkv7.attention.value_residual_mix_lora_rank", 6).count("rwkv7.attention.gate_lora_rank", 7);
  for (int i = 0; i < 3; ++i) {
    const std::string mix = layer("blk.{}.time_mix_", i), channel = layer("blk.{}.channel_mix_", i);
    const auto att = [&](const std::string& name) { return s(layer("blocks.{}.att.", i) + name); };
    const auto ffn = [&](const std::string& name) { return s(layer("blocks.{}.ffn.", i) + name); };
    std::vector<Array> lerps;
    for (const std::string letter : {"r", "w", "k", "v", "a", "g"}) lerps.push_back(squeezed(att("x_" + letter)));
    file.tensor(mix + "lerp_fused.weight", stacked(lerps));
    for (const std::string map : {"w", "a", "v", "g"}) {
      const std::string from = i == 0 && map == "v" ? "a" : map;  // llama.cpp's stand-ins, which nothing uses
      if (map != "g") file.tensor(mix + map + "0.weight", squeezed(att(from + "0")));
      file.tensor(mix + map + "1.weight", transposed(att(from + "1")));
      file.tensor(mix + map + "2.weight", transposed(att(from + "2")));
    }
    for (const std::string name : {"k_k", "k_a"}) file.tensor(mix + name + ".weight", squeezed(att(name)));
    file.tensor(mix + "r_k.weight", in_shape(att("r_k"), {12}));
    file.tensor(mix + "output.weight", att("output.weight"));
    file.tensor(channel + "lerp_k.weight", squeezed(ffn("x_k")));
    file.tensor(channel + "value.weight", ffn("value.weight"));
  }
  return file;
}

const Settings kRwkv6{{"rwkv6.mix_low_rank_dim", "4"}, {"rwkv6.decay_low_rank_dim", "5"}};
const Settings kRwkv7{{"rwkv7.decay_low_rank_dim", "4"},
                      {"rwkv7.a_low_rank_dim", "5"},
                      {"rwkv7.v_low_rank_dim", "6"},
                      {"rwkv7.gate_low_rank_dim", "7"}};

#define REFUSES(expression, text) CHECK_THROWS_WITH_AS(expression, doctest::Contains(text), InputError)

}  // namespace

TEST_CASE("GGUF files give the models that they were made of") {
  const Sample llama("attention", kLlama, 3, "transformer++"), gpt2("attention", {}, 3, "gpt2");
  CHECK(difference(*llama.model, *llama.read(llama_file(llama)).model) == 0);
  CHECK(llama.read(llama_file(llama)).model->config() == llama.model->config());
  CHECK(difference(*gpt2.model, *gpt2.read(gpt2_file(gpt2)).model) == 0);
  CHECK(gpt2.read(gpt2_file(gpt2)).model->config() == gpt2.model->config());
  const Sample mamba("mamba", {{"mamba.d_state", "5"}, {"mamba.dt_rank", "2"}}, 0);
  const Sample mamba2("mamba2", {{"mamba2.headdim", "4"}, {"mamba2.d_state", "5"}, {"mamba2.ngroups", "2"}}, 0);
  // The logarithm of e^x is not x to the last bit.
  CHECK(difference(*mamba.model, *mamba.read(mamba_file(mamba, false)).model) < 1e-5);
  CHECK(difference(*mamba2.model, *mamba2.read(mamba_file(mamba2, true)).model) < 1e-5);
  const Sample rwkv6("rwkv6", kRwkv6, 3), rwkv7("rwkv7", kRwkv7, 3);
  for (const bool fused : {true, false}) {
    CHECK(difference(*rwkv6.model, *rwkv6.read(rwkv6_file(rwkv6, fused, 0)).model) == 0);
    CHECK(difference(*rwkv6.model, *rwkv6.read(rwkv6_file(rwkv6, fused, 2)).model) == 0);
  }
  const ImportedModel seventh = rwkv7.read(rwkv7_file(rwkv7));
  CHECK(difference(*rwkv7.model, *seventh.model) == 0);
  CHECK(seventh.architecture == "RWKV-7");
}

TEST_CASE("GGUF files that ask for what is not there are refused") {
  const Sample s("attention", kLlama, 3, "transformer++");
  REFUSES(s.read(llama_file(s).count("llama.expert_count", 8)), "says llama.expert_count=8, and 0 is all");
  REFUSES(s.read(llama_file(s).text("llama.rope.scaling.type", "yarn")), "says llama.rope.scaling.type=yarn");
  CHECK_NOTHROW(s.read(llama_file(s).text("llama.rope.scaling.type", "none").real("llama.rope.scaling.factor", 1)));
  REFUSES(s.read(llama_file(s).tensor("rope_freqs.weight", {{2}, {1, 1}})), "has rope_freqs.weight");
  REFUSES(s.read(llama_file(s).tensor("blk.1.attn_x.weight", {{2}, {1, 1}})), "no place for, blk.1.attn_x.weight");
  REFUSES(s.read(llama_file(s).count("llama.attention.key_length", 8)),
          "llama.attention.key_length=8, and heads are 4");
  REFUSES(s.read(llama_file(s).count("split.count", 3)), "is one of 3 parts");
  REFUSES(s.read(GgufFile().text("general.architecture", "bert")),
          "general.architecture=bert, which is not known here");
  REFUSES(s.read(GgufFile().text("general.name", "x")), "lacks general.architecture; there are llama, gpt2");
  REFUSES(s.read(GgufFile().text("general.architecture", "llama").tensor("token_embd.weight", s("lm_head.weight"))),
          "its metadata lacks llama.attention.head_count");
  GgufFile arrays;
  arrays.text("general.architecture", "llama").counts("llama.attention.head_count", {3, 3});
  arrays.tensor("token_embd.weight", s("lm_head.weight"));
  REFUSES(s.read(arrays), "says llama.attention.head_count layer by layer");
  CHECK_THROWS_WITH_AS(s.read(llama_file(s), {.groupnorm_eps = 1}), doctest::Contains("for RWKV alone"), UsageError);
}

TEST_CASE("a GGUF file of RWKV must agree with itself") {
  const Sample s("rwkv7", kRwkv7, 3);
  REFUSES(s.read(rwkv_file(s, "rwkv6")), "general.architecture=rwkv6, and its tensors are of");
  REFUSES(s.read(rwkv7_file(s).count("rwkv7.feed_forward_length", 47)), "rwkv7.feed_forward_length=47, its tensors 48");
  REFUSES(s.read(rwkv7_file(s).count("rwkv7.token_shift_count", 1)), "rwkv7.token_shift_count=1, and 2 is all");
  GgufFile wrong;
  wrong.text("general.architecture", "rwkv7").count("rwkv7.wkv.head_size", 5);
  wrong.tensor("token_embd.weight", s("emb.weight"));
  REFUSES(s.read(wrong), "lacks blk.0.time_mix_key.weight");
}
