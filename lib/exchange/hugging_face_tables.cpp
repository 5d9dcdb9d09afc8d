#include "exchange/hugging_face.h"

namespace quipu {
namespace {

using Keys = std::vector<ConfigKey>;
using Fields = std::vector<std::pair<std::string, std::string>>;
constexpr KeyKind kCount = KeyKind::kCount, kReal = KeyKind::kReal, kFlag = KeyKind::kFlag, kTied = KeyKind::kTied,
                  kHeads = KeyKind::kHeads, kConstant = KeyKind::kConstant;

Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Fields operator+(Fields a, const Fields& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void add_tied_head(TensorLayout& layout, const std::string& embedding) {
  layout.add_weight("lm_head", "head");
  layout.unused.push_back({"lm_head.weight", "repeats the embedding", embedding + ".weight"});
}

/// What no published softmax Transformer here has.
const Fields kPlainAttention{{"attention.use_short_conv", "false"}, {"attention.conv_size", "4"}};

Architecture gpt2() {
  TensorLayout layout;
  layout.add_weight("transformer.wte", "embedding");
  layout.add_weight("transformer.wpe", "positions");
  const std::string h = "transformer.h.{}.", ours = "layers.{}.";
  layout.add_affine(h + "ln_1", ours + "mixer_norm");
  std::vector<std::string> weights, biases;
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    weights.push_back(ours + "mixer." + part + ".weight");
    biases.push_back(ours + "mixer." + part + ".bias");
  }
  const auto map = [&](const std::string& published, const std::string& parameter) {  // published as [in,out]
    layout.rules.push_back({h + published + ".weight", {ours + parameter + ".weight"}, Form::kTransposed});
    layout.rules.push_back({h + published + ".bias", {ours + parameter + ".bias"}});
  };
  layout.rules.push_back({h + "attn.c_attn.weight", weights, Form::kTransposed});
  layout.rules.push_back({h + "attn.c_attn.bias", biases});
  map("attn.c_proj", "mixer.o_proj");
  layout.add_affine(h + "ln_2", ours + "channel_norm");
  map("mlp.c_fc", "channel.c_fc");
  map("mlp.c_proj", "channel.c_proj");
  layout.add_affine("transformer.ln_f", "norm");
  for (const char* mask : {"attn.bias", "attn.masked_bias"})
    layout.unused.push_back({h + mask, "the mask of causal attention"});
  add_tied_head(layout, "transformer.wte");
  return {.model_type = "gpt2",
          .class_name = "GPT2LMHeadModel",
          .mixer = "attention",
          .keys = {{"vocab_size", kCount, "vocab", "50257"},
                   {"n_embd", kCount, "dim", "768"},
                   {"n_layer", kCount, "layers", "12"},
                   {"n_head", kCount, "heads", "12"},
                   {"n_positions", kCount, "length", "1024"},
                   {"n_inner", kCount, "mlp.hidden", "null"},
                   {"layer_norm_epsilon", kReal, "norm_eps", "1e-05"},
                   {"activation_function", kConstant, "", "\"gelu_new\""},
                   {"scale_attn_weights", kConstant, "", "true"},
                   {"scale_attn_by_inverse_layer_idx", kConstant, "", "false"},
                   {"add_cross_attention", kConstant, "", "false"},
                   {"tie_word_embeddings", kTied, "head", "true"}},
          .implied = Fields{{"channel_mixer", "mlp"},
                            {"norm", "layernorm"},
                            {"positions", "learned"},
                            {"embedding_norm", "none"},
                            {"embedding_scale", "1"},
                            {"attention.kv_heads", kAsManyAsHeads},
                            {"attention.rope", "none"},
                            {"attention.rope_base", "10000"},
                            {"attention.window", "0"},
                            {"attention.bias", "true"},
                            {"mlp.activation", "gelu"},
                            {"mlp.bias", "true"}} +
                     kPlainAttention,
          .layout = layout,
          .prefix = "transformer.",
          .usual_heads = -64};
}

const Fields kGatedBlock{{"channel_mixer", "swiglu"},
                         {"norm", "rmsnorm"},
                         {"positions", "none"},
                         {"embedding_norm", "none"},
                         {"embedding_scale", "1"}};

Architecture llama_like(const std::string& type, const std::string& class_name, const Keys& more,
                        const Fields& fields) {
  TensorLayout layout;
  layout.add_weight("model.embed_tokens", "embedding");
  const std::string block = "model.layers.{}.", ours = "layers.{}.";
  layout.add_weight(block + "input_layernorm", ours + "mixer_norm");
  layout.rules.push_back({block + "self_attn.*", {ours + "mixer.*"}});
  layout.add_weight(block + "post_attention_layernorm", ours + "channel_norm");
  layout.rules.push_back({block + "mlp.*", {ours + "channel.*"}});
  layout.add_weight("model.norm", "norm");
  layout.unused.push_back({block + "self_attn.rotary_emb.inv_freq", "the angles of rotary positions"});
  add_tied_head(layout, "model.embed_tokens");
  return {.model_type = type,
          .class_name = class_name,
          .mixer = "attention",
          .keys = Keys{{"vocab_size", kCount, "vocab"},
                       {"hidden_size", kCount, "dim"},
                       {"num_hidden_layers", kCount, "layers"},
                       {"num_attention_heads", kCount, "heads"},
                       {"num_key_value_heads", kCount, "attention.kv_heads", "null"},
                       {"intermediate_size", kCount, "swiglu.hidden"},
                       {"max_position_embeddings", kCount, "length", "2048"},
                       {"rms_norm_eps", kReal, "norm_eps", "1e-06"},
                       {"rope_theta", kReal, "attention.rope_base", "10000.0"},
                       {"rope_scaling", kConstant, "", "null"},
                       {"rope_parameters", kConstant, "", "null"},
                       {"hidden_act", kConstant, "", "\"silu\""},
                       {"tie_word_embeddings", kTied, "head", "false"}} +
                  more,
          .implied = kGatedBlock + kPlainAttention + Fields{{"attention.rope", "half"}} + fields,
          .layout = layout,
          .prefix = "model.",
          .usual_heads = -64};
}

/// A model of flash-linear-attention, whose layers call their parameters as ours do. `heads`: what a model has that
/// says none.
Architecture fla(const std::string& type, const std::string& class_name, const std::string& mixer, long heads,
                 double hidden_ratio, const Keys& more, const Fields& fields = {}) {
  TensorLayout layout;
  layout.add_weight("model.embeddings", "embedding");
  layout.rules.push_back({"model.lower_bounds", {"shared.lower_bounds"}});
  const std::string block = "model.layers.{}.", ours = "layers.{}.";
  layout.add_weight(block + "attn_norm", ours + "mixer_norm");
  layout.rules.push_back({block + "attn.*", {ours + "mixer.*"}});
  layout.add_weight(block + "mlp_norm", ours + "channel_norm");
  layout.rules.push_back({block + "mlp.*", {ours + "channel.*"}});
  layout.add_weight("model.norm", "norm");
  add_tied_head(layout, "model.embeddings");
  return {.model_type = type,
          .class_name = class_name,
          .mixer = mixer,
          .keys = Keys{{"vocab_size", kCount, "vocab", "32000"},
                       {"hidden_size", kCount, "dim", "2048"},
                       {"num_hidden_layers", kCount, "layers", type == "gated_deltanet" ? "21" : "24"},
                       {"intermediate_size", kCount, "swiglu.hidden", "null"},
                       {"max_position_embeddings", kCount, "length", "2048"},
                       {"norm_eps", kReal, "norm_eps", "1e-06"},
                       {"hidden_act", kConstant, "", "\"swish\""},
                       {"elementwise_affine", kConstant, "", "true"},
                       {"attn", kConstant, "", "null"},
                       {"attnres_block_size", kConstant, "", "null"},
                       {"tie_word_embeddings", kTied, "head", "false"}} +
                  more,
          .implied = kGatedBlock + fields,
          .layout = layout,
          .prefix = "model.",
          .hidden_ratio = hidden_ratio,
          .usual_heads = heads};
}

Keys short_conv(const std::string& mixer, const char* standard) {
  return {{"use_short_conv", kFlag, mixer + ".use_short_conv", standard},
          {"conv_size", kCount, mixer + ".conv_size", "4", mixer + ".use_short_conv"}};
}

ConfigKey head_norm(const std::string& mixer) { return {"norm_eps", kReal, mixer + ".norm_eps", "1e-06"}; }
ConfigKey head_count(const char* standard) { return {"num_heads", kCount, "heads", standard}; }

Architecture mamba_like(const std::string& type, const std::string& class_name, const Keys& more) {
  TensorLayout layout;
  layout.add_weight("backbone.embeddings", "embedding");
  const std::string block = "backbone.layers.{}.", ours = "layers.{}.";
  layout.add_weight(block + "norm", ours + "mixer_norm");
  layout.rules.push_back({block + "mixer.*", {ours + "mixer.*"}});
  layout.add_weight("backbone.norm_f", "norm");
  add_tied_head(layout, "backbone.embeddings");
  return {.model_type = type,
          .class_name = class_name,
          .mixer = type,
          .keys = Keys{{"vocab_size", kCount, "vocab"},
                       {"hidden_size", kCount, "dim"},
                       {"num_hidden_layers", kCount, "layers"},
                       {"state_size", kCount, type + ".d_state"},
                       {"conv_kernel", kCount, type + ".d_conv", "4"},
                       {"expand", kCount, type + ".expand", "2"},
                       {"norm_eps", kReal, "norm_eps", "1e-05"},
                       {"layer_norm_epsilon", kReal, "norm_eps", "null"},
                       {"use_bias", kConstant, "", "false"},
                       {"use_conv_bias", kConstant, "", "true"},
                       {"hidden_act", kConstant, "", "\"silu\""},
                       {"tie_word_embeddings", kTied, "head"}} +
                  more,
          .implied = {{"channel_mixer", "none"},
                      {"norm", "rmsnorm"},
                      {"positions", "none"},
                      {"embedding_norm", "none"},
                      {"embedding_scale", "1"}},
          .layout = layout,
          .prefix = "backbone."};
}

Architecture llama() {
  return llama_like("llama", "LlamaForCausalLM",
                    {{"attention_bias", kFlag, "attention.bias", "false"}, {"mlp_bias", kConstant, "", "false"}},
                    {{"attention.window", "0"}});
}

Architecture mistral() {
  return llama_like("mistral", "MistralForCausalLM", {{"sliding_window", kCount, "attention.window", "null"}},
                    {{"attention.bias", "false"}});
}

Architecture gsa() {
  return fla("gsa", "GSAForCausalLM", "gsa", 4, 4,
             Keys{head_count("4"),
                  {"num_kv_heads", kCount, "gsa.kv_heads", "null"},
                  {"expand_k", kConstant, "", "1"},
                  {"expand_v", kConstant, "", "1"},
                  {"num_slots", kCount, "gsa.slots", "64"},
                  {"gate_logit_normalizer", kReal, "gsa.gate_logit_normalizer", "8"},
                  {"feature_map", kConstant, "", "\"swish\""}} +
                 short_conv("gsa", "false"),
             {{"gsa.conv_bias", "false"}});
}

/// What GLA and RetNet say alike: heads whose keys and values have widths of their own, and an output gate.
Keys expanded_heads(const std::string& mixer, const char* heads, const char* keys, const char* values) {
  return Keys{head_count(heads),
              {"num_kv_heads", kConstant, "", "null"},
              {"expand_k", kReal, mixer + ".expand_k", keys},
              {"expand_v", kReal, mixer + ".expand_v", values},
              {"feature_map", kConstant, "", "null"},
              {"use_output_gate", kConstant, "", "true"},
              head_norm(mixer)} +
         short_conv(mixer, "false");
}

Architecture gla() {
  return fla("gla", "GLAForCausalLM", "gla", 4, 4,
             expanded_heads("gla", "4", "0.5", "1.0") + Keys{{"clamp_min", kConstant, "", "null"},
                                                             {"use_gk", kConstant, "", "true"},
                                                             {"use_gv", kConstant, "", "false"}},
             {{"gla.gate_low_rank_dim", "16"}, {"gla.gate_logit_normalizer", "16"}});
}

Architecture retnet() {
  return fla("retnet", "RetNetForCausalLM", "retnet", 8, 2, expanded_heads("retnet", "8", "1.0", "2.0"),
             {{"retnet.variant", "fla"}});
}

Architecture hgrn2() {
  return fla("hgrn2", "HGRN2ForCausalLM", "hgrn2", 0, 4,
             Keys{{"num_heads", kHeads, "hgrn2.expand_ratio"},
                  {"expand_ratio", kCount, "hgrn2.expand_ratio", "128"},
                  {"use_lower_bound", kConstant, "", "true"}} +
                 short_conv("hgrn2", "false"));
}

Architecture delta_net() {
  return fla("delta_net", "DeltaNetForCausalLM", "deltanet", 4, 4,
             Keys{head_count("16"),
                  {"expand_k", kReal, "deltanet.expand_k", "1.0"},
                  {"expand_v", kReal, "deltanet.expand_v", "1.0"},
                  {"use_gate", kFlag, "deltanet.use_gate", "false"},
                  {"allow_neg_eigval", kFlag, "deltanet.allow_neg_eigval", "false"},
                  {"use_beta", kConstant, "", "true"},
                  {"use_output_norm", kConstant, "", "true"},
                  {"qk_norm", kConstant, "", "\"l2\""},
                  {"qk_activation", kConstant, "", "\"silu\""},
                  head_norm("deltanet")} +
                 short_conv("deltanet", "true"));
}

Architecture gated_deltanet() {
  return fla("gated_deltanet", "GatedDeltaNetForCausalLM", "gated_deltanet", 6, 4,
             Keys{head_count("6"),
                  {"num_v_heads", kCount, "gated_deltanet.num_v_heads", "null"},
                  {"head_dim", kCount, "gated_deltanet.head_dim", "256"},
                  {"expand_v", kReal, "gated_deltanet.expand_v", "2.0"},
                  {"use_gate", kFlag, "gated_deltanet.use_gate", "true"},
                  {"allow_neg_eigval", kFlag, "gated_deltanet.allow_neg_eigval", "false"},
                  head_norm("gated_deltanet")} +
                 short_conv("gated_deltanet", "true"));
}

Architecture abc() {
  return fla("abc", "ABCForCausalLM", "abc", 4, 4,
             {head_count("4"),
              {"num_slots", kCount, "abc.slots", "64"},
              {"expand_k", kReal, "abc.expand_k", "0.5"},
              {"expand_v", kReal, "abc.expand_v", "1.0"},
              {"clamp_max", kConstant, "", "32"},
              {"clamp_min", kConstant, "", "-32"},
              {"use_short_conv", kConstant, "", "false"},
              {"use_rope", kFlag, "abc.use_rope", "true"},
              head_norm("abc")},
             {{"abc.rope_base", "10000"}, {"abc.logit_bound", "32"}});
}

Architecture mamba() {
  return mamba_like(
      "mamba", "MambaForCausalLM",
      {{"dt_rank", kCount, "mamba.dt_rank", "null"}, {"time_step_rank", kCount, "mamba.dt_rank", "null"}});
}

Architecture mamba2() {
  return mamba_like("mamba2", "Mamba2ForCausalLM",
                    {{"head_dim", kCount, "mamba2.headdim", "64"},
                     {"num_heads", kHeads, "mamba2.headdim"},
                     {"n_groups", kCount, "mamba2.ngroups", "1"},
                     {"norm_eps", kReal, "mamba2.norm_eps", "1e-05"},
                     {"layer_norm_epsilon", kReal, "mamba2.norm_eps", "null"},
                     {"rmsnorm", kConstant, "", "true"},
                     {"rms_norm", kConstant, "", "true"},
                     {"norm_before_gate", kConstant, "", "false"},
                     {"D_has_hdim", kConstant, "", "false"}});
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> known{gpt2(),  llama(),     mistral(),        gsa(), gla(),   retnet(),
                                               hgrn2(), delta_net(), gated_deltanet(), abc(), mamba(), mamba2()};
  return known;
}

}  // namespace quipu
