#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "exchange/hugging_face.h"

namespace quipu {
namespace {

using Json = nlohmann::ordered_json;

/// Fields of ModelConfig by name; other names are options.
Index ModelConfig::*count_field(std::string_view name) {
  if (name == "vocab") return &ModelConfig::vocab;
  if (name == "dim") return &ModelConfig::dim;
  if (name == "layers") return &ModelConfig::layers;
  if (name == "heads") return &ModelConfig::heads;
  return name == "length" ? &ModelConfig::length : nullptr;
}

std::string ModelConfig::*text_field(std::string_view name) {
  if (name == "channel_mixer") return &ModelConfig::channel_mixer;
  if (name == "norm") return &ModelConfig::norm;
  if (name == "positions") return &ModelConfig::positions;
  if (name == "head") return &ModelConfig::head;
  return name == "embedding_norm" ? &ModelConfig::embedding_norm : nullptr;
}

double ModelConfig::*real_field(std::string_view name) {
  if (name == "norm_eps") return &ModelConfig::norm_eps;
  return name == "embedding_scale" ? &ModelConfig::embedding_scale : nullptr;
}

double number_of(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

void set_field(ModelConfig& config, const std::string& name, const std::string& text) {
  if (const auto count = count_field(name))
    config.*count = std::stol(text);
  else if (const auto words = text_field(name))
    config.*words = text;
  else if (const auto real = real_field(name))
    config.*real = number_of(text);
  else
    config.options[name] = text;
}

/// None for an option that the model does not have.
std::optional<std::string> field(const ModelConfig& config, const std::string& name) {
  if (const auto count = count_field(name)) return fmt::format("{}", config.*count);
  if (const auto words = text_field(name)) return config.*words;
  if (const auto real = real_field(name)) return fmt::format("{}", config.*real);
  const auto found = config.options.find(name);
  return found == config.options.end() ? std::nullopt : std::optional(found->second);
}

/// Texts of one value: "10000" and "10000.0".
bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0' && x == y;
}

/// How errors speak of a configuration and of its keys.
class Wording {
 public:
  Wording(const std::string& file, const ConfigText& config)
      : where_(fmt::format("{}: its {}", file, config.called)), keys_(config.keys) {}

  /// "FILE: its config.json"
  const std::string& where() const { return where_; }
  const std::string& key(const std::string& name) const {
    const auto found = keys_.find(name);
    return found == keys_.end() ? name : found->second;
  }
  [[noreturn]] void refuse(const std::string& name, const Json& value, const char* wanted) const {
    throw InputError("{} says {}={}, which is no {}; correct it", where_, key(name), value.dump(), wanted);
  }

 private:
  std::string where_;
  const std::map<std::string, std::string>& keys_;
};

std::string text_of(const Wording& wording, const ConfigKey& key, const Json& value) {
  switch (key.kind) {
    case KeyKind::kCount:
    case KeyKind::kHeads:
      if (!value.is_number_integer() || value < 0 || value > (std::int64_t{1} << 40))
        wording.refuse(key.key, value, "whole number from 0 to 2^40");
      return fmt::format("{}", value.get<std::int64_t>());
    case KeyKind::kReal:
      if (!value.is_number() || !std::isfinite(value.get<double>())) wording.refuse(key.key, value, "number");
      return fmt::format("{}", value.get<double>());
    case KeyKind::kFlag:
    case KeyKind::kTied:
      if (!value.is_boolean()) wording.refuse(key.key, value, "true or false");
      if (key.kind == KeyKind::kTied) return value.get<bool>() ? "tied" : "untied";
      return value.get<bool>() ? "true" : "false";
    case KeyKind::kConstant:
      break;
  }
  return value.dump();
}

Json json_of(const ConfigKey& key, const std::string& text) {
  switch (key.kind) {
    case KeyKind::kCount:
    case KeyKind::kHeads:
      return std::stoll(text);
    case KeyKind::kReal:
      return number_of(text);
    case KeyKind::kFlag:
      return text == "true";
    case KeyKind::kTied:
      return text == "tied";
    case KeyKind::kConstant:
      break;
  }
  return Json::parse(key.absent);
}

/// What changes nothing about the function that a model computes.
bool is_harmless(const std::string& key) {
  static const std::set<std::string> names{"model_type",
                                           "architectures",
                                           "torch_dtype",
                                           "dtype",
                                           "transformers_version",
                                           "_name_or_path",
                                           "bos_token_id",
                                           "eos_token_id",
                                           "pad_token_id",
                                           "use_cache",
                                           "initializer_range",
                                           "hidden_ratio",
                                           "auto_map",
                                           "n_ctx",
                                           "task_specific_params",
                                           "pretraining_tp",
                                           "attn_mode",
                                           "chunk_size",
                                           "residual_in_fp32",
                                           "rescale_prenorm_residual",
                                           "A_init_range",
                                           "head_dim",
                                           "conv_init",
                                           "intermediate_size",
                                           "dt_scale",
                                           "dt_min",
                                           "dt_max",
                                           "dt_init_scheme",
                                           "dt_init_floor",
                                           "use_l2warp",
                                           "exapnd_k",
                                           "exapnd_v",
                                           "use_output_gate",
                                           "use_norm",
                                           "gate_low_rank_dim",
                                           "reorder_and_upcast_attn"};
  return names.contains(key) || key.starts_with("fuse_") || key.starts_with("summary_") ||
         key.starts_with("time_step_") || key.ends_with("_pdrop") || key.ends_with("dropout");
}

/// The published width of a gated MLP.
Index gated_width(double ratio, Index dim) {
  const auto width = static_cast<Index>(static_cast<double>(dim) * ratio * 2 / 3);
  return (width + 255) / 256 * 256;
}

Index heads_of_width(const ModelConfig& config, const std::string& option) {
  const std::string mixer = option.substr(0, option.find('.'));
  const Index width = std::max<Index>(1, std::stol(field(config, option).value_or("1")));
  return config.dim * std::stol(field(config, mixer + ".expand").value_or("1")) / width;
}

Index heads_of(const ModelConfig& config, const Architecture& known) {
  if (config.heads > 0 || known.usual_heads == 0) return config.heads;
  return known.usual_heads > 0 ? known.usual_heads : std::max<Index>(1, config.dim / -known.usual_heads);
}

/// Reads the keys of one config.json.
class ConfigReader {
 public:
  ConfigReader(const TensorSource& source, const Json& json, const Wording& wording, const Architecture& known)
      : source_(source), json_(json), wording_(wording), known_(known) {
    for (const TensorInfo& tensor : source.tensors()) elements_ += tensor.elements();
  }

  PublishedModel read() {
    model_.architecture = known_.model_type;
    model_.config.mixer = known_.mixer;
    for (const auto& [name, value] : known_.implied)
      if (value != kAsManyAsHeads) set_field(model_.config, name, value);
    for (const ConfigKey& key : known_.keys) read_key(key);
    for (const ConfigKey& key : known_.keys)
      if (key.kind == KeyKind::kHeads) check_heads(key);
    if (known_.hidden_ratio > 0 && !field(model_.config, "swiglu.hidden")) {
      const Json& ratio = value_of("hidden_ratio");
      const double times = ratio.is_number() ? ratio.get<double>() : known_.hidden_ratio;
      if (!(times > 0 && times < 1e6)) wording_.refuse("hidden_ratio", ratio, "number above 0");
      set_field(model_.config, "swiglu.hidden", fmt::format("{}", gated_width(times, model_.config.dim)));
    }
    drop_unneeded();
    note_unread();
    return std::move(model_);
  }

 private:
  const Json& value_of(const std::string& key) const {
    static const Json nothing;
    const auto found = json_.find(key);
    // Mamba's rank may be the word for what is usual.
    return found == json_.end() || *found == "auto" ? nothing : *found;
  }

  void read_key(const ConfigKey& key) {
    const Json& value = value_of(key.key);
    if (key.kind == KeyKind::kHeads) return;
    if (key.kind == KeyKind::kConstant) {
      if (!value.is_null() && value != Json::parse(key.absent))
        throw InputError("{} says {}={}, and {} is all that {} can have here; it cannot be read", wording_.where(),
                         wording_.key(key.key), value.dump(), key.absent, known_.model_type);
      return;
    }
    std::string text;
    if (!value.is_null()) {
      text = text_of(wording_, key, value);
    } else if (key.kind == KeyKind::kTied && (key.absent.empty() || !json_.contains(key.key))) {
      const bool tied = source_.find("lm_head.weight") == nullptr;
      text = tied ? "tied" : "untied";
      model_.notes.push_back(fmt::format("head: {}, as the file has {} lm_head.weight", text, tied ? "no" : "an"));
    } else if (key.absent.empty()) {
      throw InputError("{} lacks {}, which {} has; is it whole?", wording_.where(), wording_.key(key.key),
                       known_.model_type);
    } else {
      const Json usual = Json::parse(key.absent);
      if (usual.is_null()) return;
      text = text_of(wording_, key, usual);
    }
    if (key.kind == KeyKind::kCount) require_size(key, text);
    set_field(model_.config, key.ours, text);
  }

  /// No size is believed that the file's tensors cannot have.
  void require_size(const ConfigKey& key, const std::string& text) const {
    if (key.ours == "attention.window" || (key.ours == "length" && field(model_.config, "positions") != "learned"))
      return;
    const auto value = static_cast<std::uint64_t>(std::stoll(text));
    const std::uint64_t most = key.ours == "layers" ? source_.tensors().size() : elements_;
    if (value > most)
      throw InputError("{} says {}={}, and its tensors have {} {}; they do not belong together", wording_.where(),
                       wording_.key(key.key), value, most, key.ours == "layers" ? "names" : "numbers");
  }

  void check_heads(const ConfigKey& key) const {
    const Json& value = value_of(key.key);
    if (value.is_null()) return;
    const Index heads = heads_of_width(model_.config, key.ours);
    if (std::stol(text_of(wording_, key, value)) != heads)
      throw InputError("{} says {}={}, and its widths make {}; correct it", wording_.where(), wording_.key(key.key),
                       value.dump(), heads);
  }

  void drop_unneeded() {
    for (const ConfigKey& key : known_.keys)
      if (!key.needs.empty() && field(model_.config, key.needs) != "true") model_.config.options.erase(key.ours);
  }

  void note_unread() {
    std::vector<std::string> unread;
    for (const auto& [key, value] : json_.items()) {
      const auto is_read = [&name = key](const ConfigKey& known) { return known.key == name; };
      if (!is_harmless(key) && std::ranges::none_of(known_.keys, is_read)) unread.push_back(key);
    }
    if (!unread.empty()) model_.notes.push_back(fmt::format("config.json: not used: {}", fmt::join(unread, ", ")));
  }

  const TensorSource& source_;
  const Json& json_;
  const Wording& wording_;
  const Architecture& known_;
  std::uint64_t elements_ = 0;
  PublishedModel model_;
};

/// The layout for a file whose names lack the prefix.
TensorLayout without_prefix(TensorLayout layout, const std::string& prefix) {
  const auto strip = [&](std::string& name) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  };
  for (TensorRule& rule : layout.rules) strip(rule.published);
  for (UnusedTensor& unused : layout.unused) strip(unused.published), strip(unused.copy_of);
  return layout;
}

std::string known_types() {
  std::string names = "rwkv, rwkv7";
  for (const Architecture& known : architectures()) names += ", " + known.model_type;
  return names;
}

/// The embedding alone decides how large a model becomes: it must be as the configuration says before one is built.
void check_embedding(const TensorSource& source, const ConfigText& config, const PublishedModel& model) {
  const std::string& name = model.layout.rules.front().published;
  const TensorInfo& table = source.tensor(name);
  if (table.shape != std::vector<std::int64_t>{model.config.vocab, model.config.dim})
    throw InputError("{}: {} is {}, and its {} says [{}, {}]; they do not belong together", source.name(), name,
                     type_and_shape(table), config.called, model.config.vocab, model.config.dim);
}

}  // namespace

PublishedModel recognise_hugging_face(const TensorSource& source, const ConfigText& config) {
  const Json json = Json::parse(config.json, nullptr, false);
  const Wording wording(source.name(), config);
  const auto type = json.is_object() ? json.find("model_type") : json.end();
  if (type == json.end() || !type->is_string())
    throw InputError("{} names no model_type; there are {}", wording.where(), known_types());
  const auto known = std::ranges::find(architectures(), type->get<std::string>(), &Architecture::model_type);
  if (known == architectures().end())
    throw InputError("{} says model_type={}, which is not known here; there are {}", wording.where(), type->dump(),
                     known_types());
  PublishedModel model = ConfigReader(source, json, wording, *known).read();
  model.layout = known->layout;
  if (source.find(model.layout.rules.front().published) == nullptr)
    model.layout = without_prefix(std::move(model.layout), known->prefix);
  check_embedding(source, config, model);
  return model;
}

std::optional<PublishedConfig> hugging_face_config(const ModelConfig& config, std::string& why) {
  const auto known = std::ranges::find(architectures(), config.mixer, &Architecture::mixer);
  if (known == architectures().end()) {
    why = fmt::format("the mixer {}", config.mixer);
    return std::nullopt;
  }
  for (auto candidate = known; candidate != architectures().end(); ++candidate) {
    if (candidate->mixer != config.mixer) continue;
    PublishedConfig out{&*candidate,
                        {{"model_type", candidate->model_type}, {"architectures", {candidate->class_name}}}};
    std::set<std::string> said{"mixer"};
    const std::string heads = fmt::format("{}", heads_of(config, *candidate));
    std::string difference;  // the first one
    const auto differ = [&](const std::string& name, const std::string& value) {
      if (difference.empty()) difference = fmt::format("{}={}", name, value);
    };
    for (const auto& [name, value] : candidate->implied) {
      said.insert(name);
      const std::string& wanted = value == kAsManyAsHeads ? heads : value;
      if (const auto ours = field(config, name); ours && !same_value(*ours, wanted)) differ(name, *ours);
    }
    for (const ConfigKey& key : candidate->keys) {
      std::optional<std::string> ours = field(config, key.ours);
      said.insert(key.ours);
      if (key.kind == KeyKind::kConstant) ours = key.absent;
      if (key.kind == KeyKind::kHeads) ours = fmt::format("{}", heads_of_width(config, key.ours));
      if (key.ours == "heads") ours = heads;
      if (!ours) continue;
      const Json value = json_of(key, *ours);
      if (out.json.contains(key.key) && out.json[key.key] != value) differ(key.ours, *ours);
      out.json[key.key] = value;
    }
    for (const auto& [name, value] : config.options)
      if (!said.contains(name)) differ(name, value);
    if (difference.empty()) return out;
    // Of several architectures, the one with the same channel mixer is meant.
    if (why.empty() || !difference.starts_with("channel_mixer=")) why = difference;
  }
  return std::nullopt;
}

}  // namespace quipu
