#pragma once
#include <string>
#include <utility>

#include "models/segment_golden.h"

// What the published implementations of Transformer-XL, and of memory tokens around it, call our parameters.
namespace quipu::inline QUIPU_REAL_NS {

inline PublishedPart transformer_xl_name(const std::string& name) {
  static const std::pair<const char*, const char*> whole[] = {{"embedding.weight", "word_emb.emb_layers.0.weight"},
                                                              {"head.bias", "crit.out_layers.0.bias"},
                                                              {"memory.weight", "mem_tokens"},
                                                              {"shared.content_bias", "r_w_bias"},
                                                              {"shared.position_bias", "r_r_bias"}};
  static const std::pair<const char*, const char*> in_layer[] = {
      {".mixer.qkv_proj.", ".dec_attn.qkv_net."}, {".mixer.r_proj.", ".dec_attn.r_net."},
      {".mixer.o_proj.", ".dec_attn.o_net."},     {".mixer.norm.", ".dec_attn.layer_norm."},
      {".channel_norm.", ".pos_ff.layer_norm."},  {".channel.c_fc.", ".pos_ff.CoreNet.0."},
      {".channel.c_proj.", ".pos_ff.CoreNet.3."}};
  for (const auto& [ours, theirs] : whole)
    if (name == ours) return {theirs};
  for (const auto& [ours, theirs] : in_layer)
    if (const std::size_t at = name.find(ours); at != std::string::npos)
      return {std::string(name).replace(at, std::string(ours).size(), theirs)};
  throw InternalError("test: no published name for {}", name);
}

/// The model of a case of transformer_xl.h5 or rmt.h5, post-norm, with segments of `length` tokens.
inline ModelConfig transformer_xl_config(const GoldenCase& golden, Index length) {
  ModelConfig config;
  config.mixer = "transformer_xl";
  config.vocab = static_cast<Index>(golden.number("vocab"));
  config.dim = static_cast<Index>(golden.number("d_model"));
  config.layers = static_cast<Index>(golden.number("n_layer"));
  config.heads = static_cast<Index>(golden.number("num_heads"));
  config.length = length;
  config.memory_tokens = static_cast<Index>(golden.number_or("num_mem_tokens", 0));
  config.options = {{"transformer_xl.memory", fmt::format("{}", golden.number("mem_len"))},
                    {"transformer_xl.read_cache", golden.number_or("read_mem_from_cache", 0) != 0 ? "true" : "false"},
                    {"mlp.hidden", fmt::format("{}", golden.number("d_inner"))}};
  return config;
}

}  // namespace quipu::inline QUIPU_REAL_NS
