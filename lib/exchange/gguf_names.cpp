#include "exchange/gguf_names.h"

namespace quipu {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

const std::string kBlock = "blk.{}.";

GgufArchitecture gpt2() {
  ForeignNames names;
  const std::string h = "transformer.h.{}.";
  add_weight_name(names, "token_embd", "transformer.wte");
  add_weight_name(names, "position_embd", "transformer.wpe");
  add_affine_name(names, kBlock + "attn_norm", h + "ln_1");
  const auto map = [&](const char* foreign, const char* published) {  // [out,in], unlike the published ones
    add_weight_name(names, kBlock + foreign, h + published, Form::kSame);
    names.push_back({kBlock + foreign + ".bias", h + published + ".bias"});
  };
  map("attn_qkv", "attn.c_attn");
  map("attn_output", "attn.c_proj");
  add_affine_name(names, kBlock + "ffn_norm", h + "ln_2");
  map("ffn_up", "mlp.c_fc");
  map("ffn_down", "mlp.c_proj");
  add_affine_name(names, "output_norm", "transformer.ln_f");
  add_weight_name(names, "output", "lm_head");
  return {"gpt2",
          "gpt2",
          {{"n_embd", "embedding_length"},
           {"n_layer", "block_count"},
           {"n_head", "attention.head_count"},
           {"n_positions", "context_length"},
           {"n_inner", "feed_forward_length"},
           {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
          names};
}

GgufArchitecture llama() {
  ForeignNames names;
  const std::string h = "model.layers.{}.";
  add_weight_name(names, "token_embd", "model.embed_tokens");
  add_weight_name(names, kBlock + "attn_norm", h + "input_layernorm");
  add_affine_name(names, kBlock + "attn_q", h + "self_attn.q_proj", Form::kPaired);
  add_affine_name(names, kBlock + "attn_k", h + "self_attn.k_proj", Form::kPaired);
  add_affine_name(names, kBlock + "attn_v", h + "self_attn.v_proj");
  add_affine_name(names, kBlock + "attn_output", h + "self_attn.o_proj");
  add_weight_name(names, kBlock + "ffn_norm", h + "post_attention_layernorm");
  add_weight_name(names, kBlock + "ffn_gate", h + "mlp.gate_proj");
  add_weight_name(names, kBlock + "ffn_up", h + "mlp.up_proj");
  add_weight_name(names, kBlock + "ffn_down", h + "mlp.down_proj");
  add_weight_name(names, "output_norm", "model.norm");
  add_weight_name(names, "output", "lm_head");
  return {"llama",
          "llama",
          {{"hidden_size", "embedding_length"},
           {"num_hidden_layers", "block_count"},
           {"num_attention_heads", "attention.head_count"},
           {"num_key_value_heads", "attention.head_count_kv"},
           {"intermediate_size", "feed_forward_length"},
           {"max_position_embeddings", "context_length"},
           {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
           {"rope_theta", "rope.freq_base"}},
          names,
          {{"expert_count", "0"},
           {"rope.scaling.type", "none"},
           {"rope.scaling.factor", "1"},
           {"attention.sliding_window", "0"}}};
}

/// What Mamba and Mamba-2 have alike.
GgufArchitecture mamba_like(const std::string& name, const Keys& more) {
  ForeignNames names;
  const std::string h = "backbone.layers.{}.";
  add_weight_name(names, "token_embd", "backbone.embeddings");
  add_weight_name(names, kBlock + "attn_norm", h + "norm");
  add_weight_name(names, kBlock + "ssm_in", h + "mixer.in_proj");
  add_affine_name(names, kBlock + "ssm_conv1d", h + "mixer.conv1d");
  names.push_back({kBlock + "ssm_a", h + "mixer.A_log", Form::kAnyShape, Numbers::kMinusExp});
  names.push_back({kBlock + "ssm_d", h + "mixer.D", Form::kAnyShape});
  add_weight_name(names, kBlock + "ssm_out", h + "mixer.out_proj");
  add_weight_name(names, "output_norm", "backbone.norm_f");
  add_weight_name(names, "output", "lm_head");
  Keys keys{{"hidden_size", "embedding_length"},
            {"num_hidden_layers", "block_count"},
            {"state_size", "ssm.state_size"},
            {"conv_kernel", "ssm.conv_kernel"},
            {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return {name, name, keys, names, {{"ssm.dt_b_c_rms", "false"}}};
}

GgufArchitecture mamba() {
  GgufArchitecture known = mamba_like("mamba", {{"time_step_rank", "ssm.time_step_rank"}});
  add_weight_name(known.names, kBlock + "ssm_x", "backbone.layers.{}.mixer.x_proj");
  add_affine_name(known.names, kBlock + "ssm_dt", "backbone.layers.{}.mixer.dt_proj");
  return known;
}

GgufArchitecture mamba2() {
  GgufArchitecture known = mamba_like("mamba2", {{"num_heads", "ssm.time_step_rank"}, {"n_groups", "ssm.group_count"}});
  known.names.push_back({kBlock + "ssm_dt.bias", "backbone.layers.{}.mixer.dt_bias"});
  known.names.push_back({kBlock + "ssm_norm.weight", "backbone.layers.{}.mixer.norm.weight", Form::kAnyShape});
  return known;
}

/// What RWKV-6 and RWKV-7 have alike. `vectors` and `matrices`: names behind "time_mix_", and in published files.
GgufArchitecture rwkv(const std::string& name, const Keys& vectors, const Keys& matrices, const std::string& shift) {
  ForeignNames names;
  const std::string att = "blocks.{}.att.", ffn = "blocks.{}.ffn.";
  add_weight_name(names, "token_embd", "emb");
  add_affine_name(names, "token_embd_norm", "blocks.0.ln0");
  add_affine_name(names, kBlock + "attn_norm", "blocks.{}.ln1");
  add_affine_name(names, kBlock + "attn_norm_2", "blocks.{}.ln2");
  for (const auto& [theirs, published] : vectors)
    names.push_back({kBlock + "time_mix_" + theirs + ".weight", att + published});
  for (const char* both : {"receptance", "key", "value", "output"})
    add_weight_name(names, kBlock + "time_mix_" + both, att + both);
  for (const auto& [theirs, published] : matrices)
    add_weight_name(names, kBlock + "time_mix_" + theirs, att + published);
  add_affine_name(names, kBlock + "time_mix_ln", att + "ln_x");
  for (const char* letter : {"k", "r"})
    names.push_back({kBlock + "channel_mix_lerp_" + letter + ".weight", ffn + shift + letter});
  for (const char* both : {"key", "value", "receptance"})
    add_weight_name(names, kBlock + "channel_mix_" + both, ffn + both);
  add_affine_name(names, "output_norm", "ln_out");
  add_weight_name(names, "output", "head");
  return {name, "", {}, names};
}

GgufArchitecture rwkv6() {
  Keys vectors{{"lerp_x", "time_maa_x"},      {"lerp_fused", "time_maa_wkvrg"}, {"w1", "time_maa_w1"},
               {"w2", "time_maa_w2"},         {"first", "time_faaaa"},          {"decay", "time_decay"},
               {"decay_w1", "time_decay_w1"}, {"decay_w2", "time_decay_w2"}};
  for (const char* letter : {"w", "k", "v", "r", "g"})
    vectors.emplace_back(std::string("lerp_") + letter, std::string("time_maa_") + letter);
  return rwkv("rwkv6", vectors, {{"gate", "gate"}}, "time_maa_");
}

GgufArchitecture rwkv7() {
  Keys vectors{{"lerp_fused", "x_rwkvag"}, {"k_k", "k_k"}, {"k_a", "k_a"}, {"r_k", "r_k"}};
  for (const std::string map : {"w", "a", "v", "g"})
    for (const char* part : {"0", "1", "2"}) vectors.emplace_back(map + part, map + part);
  return rwkv("rwkv7", vectors, {}, "x_");
}

}  // namespace

const std::vector<GgufArchitecture>& gguf_architectures() {
  static const std::vector<GgufArchitecture> known{llama(), gpt2(), mamba(), mamba2(), rwkv6(), rwkv7()};
  return known;
}

}  // namespace quipu
