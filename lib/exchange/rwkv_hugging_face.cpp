#include "exchange/rwkv_hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "exchange/foreign_names.h"
#include "exchange/rwkv_layout.h"

namespace quipu {
namespace {

using Json = nlohmann::ordered_json;

/// transformers' RwkvForCausalLM.
ForeignNames rwkv4_names() {
  ForeignNames names;
  add_weight_name(names, "rwkv.embeddings", "emb");
  add_affine_name(names, "rwkv.blocks.0.pre_ln", "blocks.0.ln0");
  const std::string theirs = "rwkv.blocks.{}.", ours = "blocks.{}.";
  for (const char* norm : {"ln1", "ln2"}) add_affine_name(names, theirs + norm, ours + norm);
  for (const char* name :
       {"time_decay", "time_first", "key.weight", "value.weight", "receptance.weight", "output.weight"})
    names.push_back({theirs + "attention." + name, ours + "att." + name});
  for (const std::string name : {"key", "value", "receptance"}) {
    names.push_back({theirs + "attention.time_mix_" + name, ours + "att.time_mix_" + name[0]});
    if (name != "value") names.push_back({theirs + "feed_forward.time_mix_" + name, ours + "ffn.time_mix_" + name[0]});
    add_weight_name(names, theirs + "feed_forward." + name, ours + "ffn." + name);
  }
  add_affine_name(names, "rwkv.ln_out", "ln_out");
  add_weight_name(names, "head", "head");
  return names;
}

/// flash-linear-attention's RWKV7ForCausalLM.
ForeignNames rwkv7_names() {
  ForeignNames names;
  add_weight_name(names, "model.embeddings", "emb");
  add_affine_name(names, "model.layers.0.pre_norm", "blocks.0.ln0");
  const std::string theirs = "model.layers.{}.", ours = "blocks.{}.";
  add_affine_name(names, theirs + "attn_norm", ours + "ln1");
  add_affine_name(names, theirs + "ffn_norm", ours + "ln2");
  for (const char* name : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "k_k", "k_a", "r_k"})
    names.push_back({theirs + "attn." + name, ours + "att." + name});
  names.push_back({theirs + "attn.x_x", ours + "att.x_rwkvag"});
  for (const std::string map : {"w", "a", "v", "g"}) {
    const std::string lora = theirs + "attn." + map + "_lora.lora.";
    names.push_back({lora + "2.bias", ours + "att." + map + "0"});
    names.push_back({lora + "0.weight", ours + "att." + map + "1"});
    names.push_back({lora + "2.weight", ours + "att." + map + "2"});
  }
  for (const std::string name : {"receptance", "key", "value", "output"})
    names.push_back({theirs + "attn." + name[0] + "_proj.weight", ours + "att." + name + ".weight"});
  add_affine_name(names, theirs + "attn.g_norm", ours + "att.ln_x");
  for (const char* name : {"x_k", "key.weight", "value.weight"})
    names.push_back({theirs + "ffn." + name, ours + "ffn." + name});
  add_affine_name(names, "model.norm", "ln_out");
  add_weight_name(names, "lm_head", "head");
  return names;
}

/// One config.json, and the tensors that it must agree with.
class Config {
 public:
  Config(const TensorSource& source, const Json& json) : file_(source.name()), json_(json) {}

  /// A key that may be missing or null must else be `told`.
  void agree(const char* key, Index told) const {
    const Json& value = value_of(key);
    if (value.is_null() || (value.is_number_integer() && value == told)) return;
    throw InputError("{}: its config.json says {}={}, and its tensors {}; they do not belong together", file_, key,
                     value.dump(), told);
  }
  void require(const char* key, const Json& only) const {
    const Json& value = value_of(key);
    if (value.is_null() || value == only) return;
    throw InputError("{}: its config.json says {}={}, and {} is all that RWKV can have here; it cannot be read", file_,
                     key, value.dump(), only.dump());
  }
  double positive(const char* key, double absent) const {
    const Json& value = value_of(key);
    if (value.is_null()) return absent;
    if (value.is_number() && value.get<double>() > 0 && value.get<double>() < 1e12) return value.get<double>();
    throw InputError("{}: its config.json says {}={}, which is no number above 0; correct it", file_, key,
                     value.dump());
  }
  Index count(const char* key, Index absent) const {
    const Json& value = value_of(key);
    if (value.is_null()) return absent;
    if (value.is_number_integer() && value > 0 && value < (std::int64_t{1} << 40)) return value.get<Index>();
    throw InputError("{}: its config.json says {}={}, which is no whole number above 0; correct it", file_, key,
                     value.dump());
  }
  const Json& value_of(const char* key) const {
    static const Json nothing;
    const auto found = json_.find(key);
    return found == json_.end() ? nothing : *found;
  }

 private:
  const std::string& file_;
  const Json& json_;
};

void check_sizes(const Config& config, const PublishedModel& model) {
  config.agree("vocab_size", model.config.vocab);
  config.agree("hidden_size", model.config.dim);
  config.agree("num_hidden_layers", model.config.layers);
  config.agree("intermediate_size", std::stol(model.config.options.at("rwkv_channel.dim_ffn")));
  config.require("tie_word_embeddings", false);
}

PublishedModel read_rwkv4(const TensorSource& view, const Config& config, const ImportOptions& options) {
  PublishedModel model = recognise_rwkv(view, RwkvDialect{.any_shape = true}, options);
  check_sizes(config, model);
  config.agree("attention_hidden_size", model.config.dim);
  model.config.norm_eps = config.positive("layer_norm_epsilon", 1e-5);
  model.config.length = config.count("context_length", 1024);
  const Json& rescale = config.value_of("rescale_every");
  if (rescale.is_number_integer() && rescale > 0)
    model.notes.push_back(fmt::format(
        "rescale_every={}: transformers halves weights and activations as it computes; the file holds the whole ones",
        rescale.dump()));
  return model;
}

PublishedModel read_rwkv7(const TensorSource& view, const Config& config, const ImportOptions& options) {
  const double eps = config.positive("norm_eps", 1e-5);
  config.require("attn", nullptr);
  config.require("norm_first", true);
  config.require("norm_bias", true);
  config.require("hidden_act", "sqrelu");
  RwkvDialect dialect{.maps_as_ours = true, .any_shape = true};
  dialect.stacked_shifts = view.find("blocks.0.att.x_rwkvag") != nullptr;
  dialect.groupnorm_why = "as its norm_eps times the width of a head";
  const ModelConfig told = recognise_rwkv(view, dialect, options).config;  // the epsilon needs its heads
  const Index width = told.dim / told.heads;
  dialect.groupnorm_eps = std::stod(fmt::format("{:.12g}", eps * static_cast<double>(width)));
  PublishedModel model = recognise_rwkv(view, dialect, options);
  check_sizes(config, model);
  config.agree("num_heads", model.config.heads);
  if (config.value_of("num_heads").is_null()) config.agree("head_dim", width);
  const Json& values = config.value_of("value_dim");
  if (!values.is_array() || !std::ranges::all_of(values, [&](const Json& value) { return value == told.dim; }))
    config.agree("value_dim", told.dim);
  for (const char* rank : {"decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim", "gate_low_rank_dim"})
    if (const auto said = model.config.options.find(std::string("rwkv7.") + rank); said != model.config.options.end())
      config.agree(rank, std::stol(said->second));
  model.config.norm_eps = eps;
  model.config.length = config.count("max_position_embeddings", 2048);
  return model;
}

}  // namespace

bool is_rwkv_config(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto type = json.is_object() ? json.find("model_type") : json.end();
  return type != json.end() && (*type == "rwkv" || *type == "rwkv7");
}

void require_rwkv_config(const std::string& file, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto type = json.is_object() ? json.find("model_type") : json.end();
  if (type == json.end() || (type->is_string() && type->get<std::string>().starts_with("rwkv"))) return;
  throw InputError(
      "{}: its config.json says model_type={}, and its tensors are those of RWKV; they do not belong together", file,
      type->dump());
}

PublishedModel recognise_rwkv_config(const TensorSource& source, const std::string& text,
                                     const ImportOptions& options) {
  const Json json = Json::parse(text);
  const bool seventh = json["model_type"] == "rwkv7";
  const ForeignNames names = seventh ? rwkv7_names() : rwkv4_names();
  const auto view = published_view(source, names);
  const char* const first = seventh ? "blocks.0.att.k_k" : "blocks.0.att.time_decay";
  if (!is_rwkv(*view) || view->find(first) == nullptr)
    throw InputError("{}: its config.json says model_type={}, and it lacks {}; get the file again", source.name(),
                     json["model_type"].dump(),
                     seventh ? "model.layers.0.attn.k_k" : "rwkv.blocks.0.attention.time_decay");
  const Config config(source, json);
  PublishedModel model = seventh ? read_rwkv7(*view, config, options) : read_rwkv4(*view, config, options);
  if (!seventh && model.architecture != "RWKV-4")
    throw InputError("{}: its config.json says model_type=\"rwkv\", which is RWKV-4, and its tensors are of {}",
                     source.name(), model.architecture);
  model.layout = foreign_layout(model.layout, names);
  return model;
}

}  // namespace quipu
