#include "exchange/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "exchange/gguf_names.h"
#include "exchange/hugging_face.h"
#include "exchange/rwkv_layout.h"
#include "store/byte_cursor.h"

namespace quipu {
namespace {

using Json = nlohmann::ordered_json;

/// The metadata of one architecture.
class Metadata {
 public:
  Metadata(const TensorSource& source, std::string architecture)
      : source_(source), prefix_(std::move(architecture) + ".") {}

  std::string key(const std::string& name) const { return prefix_ + name; }

  /// Null where there is none. What was asked for counts as used.
  Json value(const std::string& name) const {
    used_.insert(key(name));
    const MetadataValue* const value = source_.metadata().find(key(name));
    if (value == nullptr) return nullptr;
    if (const auto* flag = std::get_if<bool>(value)) return *flag;
    if (const auto* whole = std::get_if<std::int64_t>(value)) return *whole;
    if (const auto* real = std::get_if<double>(value)) {
      const std::string digits = fmt::format("{}", static_cast<float>(*real));  // as few as single precision has
      return std::abs(*real) <= 3e38 ? Json::parse(digits) : Json(digits);
    }
    if (const auto* text = std::get_if<std::string>(value)) return *text;
    throw InputError("{}: its metadata says {} layer by layer, which is not read here", source_.name(), key(name));
  }

  /// A whole number above 0; 0 where it is missing or 0.
  Index count(const std::string& name) const {
    const Json found = value(name);
    if (found.is_null() || found == 0) return 0;
    if (found.is_number_integer() && found > 0 && found < (std::int64_t{1} << 40)) return found.get<Index>();
    throw InputError("{}: its metadata says {}={}, which is no whole number; get the file again", source_.name(),
                     key(name), found.dump());
  }
  Index required(const std::string& name) const {
    if (const Index found = count(name); found > 0) return found;
    throw InputError("{}: its metadata lacks {}; get the file again", source_.name(), key(name));
  }
  double real(const std::string& name, double absent) const {
    const Json found = value(name);
    if (found.is_null()) return absent;
    if (found.is_number() && found > 0) return found.get<double>();
    throw InputError("{}: its metadata says {}={}, which is no number above 0; get the file again", source_.name(),
                     key(name), found.dump());
  }

  /// Where it is there and not 0, it must be `told`.
  void agree(const std::string& name, Index told) const {
    if (const Index said = count(name); said != 0 && said != told)
      throw InputError("{}: its metadata says {}={}, its tensors {}; get the file again", source_.name(), key(name),
                       said, told);
  }
  void only(const std::string& name, const std::string& allowed) const {
    const Json found = value(name);
    const std::string text = found.is_string() ? found.get<std::string>() : found.dump();
    if (found.is_null() || text == allowed || (found.is_number() && found == std::strtod(allowed.c_str(), nullptr)))
      return;
    throw InputError("{}: its metadata says {}={}, and {} is all that can be read here", source_.name(), key(name),
                     text, allowed);
  }

  void note_unused(std::vector<std::string>& notes) const {
    std::vector<std::string> unused;
    for (const auto& [name, value] : source_.metadata().values)
      if (name.starts_with(prefix_) && !used_.contains(name)) unused.push_back(name);
    if (!unused.empty()) notes.push_back(fmt::format("metadata: not used: {}", fmt::join(unused, ", ")));
  }

 private:
  const TensorSource& source_;
  std::string prefix_;
  mutable std::set<std::string> used_;
};

std::string known_architectures() {
  std::string names;
  for (const GgufArchitecture& known : gguf_architectures()) names += (names.empty() ? "" : ", ") + known.name;
  return names;
}

const GgufArchitecture& find_architecture(const TensorSource& source) {
  const MetadataValue* const value = source.metadata().find("general.architecture");
  const auto* const name = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (name == nullptr)
    throw InputError("{}: its metadata lacks general.architecture; there are {}", source.name(), known_architectures());
  const auto known = std::ranges::find(gguf_architectures(), *name, &GgufArchitecture::name);
  if (known == gguf_architectures().end())
    throw InputError("{}: its metadata says general.architecture={}, which is not known here; there are {}",
                     source.name(), shown_name(*name), known_architectures());
  return *known;
}

void require_whole(const TensorSource& source) {
  const MetadataValue* const value = source.metadata().find("split.count");
  const auto* const parts = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  if (parts != nullptr && *parts > 1)
    throw InputError("{}: is one of {} parts of a model; join them with llama-gguf-split --merge first", source.name(),
                     *parts);
  if (source.find("rope_freqs.weight") != nullptr)
    throw InputError("{}: has rope_freqs.weight, scaled rotary positions, which are not read here", source.name());
}

/// The configuration as config.json would say it.
ConfigText make_config(const TensorSource& source, const GgufArchitecture& known, const Metadata& metadata) {
  Json json{{"model_type", known.model_type}};
  ConfigText config{.json = {}, .called = "metadata", .keys = {}};
  for (const auto& [key, foreign] : known.keys) {
    const Json value = metadata.value(foreign);
    config.keys[key] = metadata.key(foreign);
    if (!value.is_null()) json[key] = value;
  }
  const TensorInfo& table = source.tensor("token_embd.weight");
  json["vocab_size"] = table.shape.empty() ? 0 : table.shape.front();
  if (const Json told = metadata.value("vocab_size"); !told.is_null()) metadata.agree("vocab_size", json["vocab_size"]);
  json["tie_word_embeddings"] = source.find("output.weight") == nullptr;
  if (known.model_type == "llama") {
    json["attention_bias"] = source.find("blk.0.attn_q.bias") != nullptr;
    const Index heads = metadata.required("attention.head_count"),
                width = metadata.required("embedding_length") / heads;
    for (const char* name : {"rope.dimension_count", "attention.key_length", "attention.value_length"})
      if (const Index said = metadata.count(name); said != 0 && said != width)
        throw InputError("{}: its metadata says {}={}, and heads are {} wide here; it cannot be read", source.name(),
                         metadata.key(name), said, width);
  }
  if (known.model_type.starts_with("mamba")) {
    const Index dim = metadata.required("embedding_length"), inner = metadata.required("ssm.inner_size");
    if (inner % dim != 0)
      throw InputError("{}: its metadata says {}={}, no multiple of {}={}; it cannot be read", source.name(),
                       metadata.key("ssm.inner_size"), inner, metadata.key("embedding_length"), dim);
    json["expand"] = inner / dim;
    config.keys["expand"] = metadata.key("ssm.inner_size");
    if (known.model_type == "mamba2") {
      const Index heads = metadata.required("ssm.time_step_rank");
      if (inner % heads != 0)
        throw InputError("{}: its metadata says {}={}, which does not divide {}={}; get the file again", source.name(),
                         metadata.key("ssm.time_step_rank"), heads, metadata.key("ssm.inner_size"), inner);
      json["head_dim"] = inner / heads;
    }
  }
  config.json = json.dump();
  return config;
}

/// RWKV's sizes are in its shapes; the metadata must agree.
PublishedModel recognise_gguf_rwkv(const TensorSource& source, const TensorSource& view, const Metadata& metadata,
                                   const std::string& name, const ImportOptions& options) {
  if (!is_rwkv(view))
    throw InputError(
        "{}: its metadata says general.architecture={}, and it lacks blk.0.time_mix_key.weight; get the "
        "file again",
        source.name(), name);
  RwkvDialect dialect{.maps_as_ours = true, .any_shape = true, .stacked_shifts = true};
  dialect.head_width = metadata.required("wkv.head_size");
  dialect.halved_every = metadata.count("rescale_every_n_layers");
  dialect.groupnorm_why = "as llama.cpp computes";
  PublishedModel model = recognise_rwkv(view, dialect, options);
  const std::string told = "rwkv" + std::string(model.architecture.substr(std::string("RWKV-").size()));
  if (told != name)
    throw InputError("{}: its metadata says general.architecture={}, and its tensors are of {}; get the file again",
                     source.name(), name, model.architecture);
  const auto option = [&](const std::string& key) {
    const auto found = model.config.options.find(key);
    return found == model.config.options.end() ? Index{0} : std::stol(found->second);
  };
  const std::pair<const char*, Index> sizes[] = {{"embedding_length", model.config.dim},
                                                 {"block_count", model.config.layers},
                                                 {"feed_forward_length", option("rwkv_channel.dim_ffn")},
                                                 {"time_mix_extra_dim", option("rwkv6.mix_low_rank_dim")},
                                                 {"time_decay_extra_dim", option("rwkv6.decay_low_rank_dim")},
                                                 {"attention.decay_lora_rank", option("rwkv7.decay_low_rank_dim")},
                                                 {"attention.iclr_lora_rank", option("rwkv7.a_low_rank_dim")},
                                                 {"attention.gate_lora_rank", option("rwkv7.gate_low_rank_dim")}};
  for (const auto& [key, size] : sizes)
    if (size != 0) metadata.agree(key, size);
  metadata.only("token_shift_count", "2");
  if (option("rwkv7.v_low_rank_dim") != 0)
    metadata.agree("attention.value_residual_mix_lora_rank", option("rwkv7.v_low_rank_dim"));
  model.config.norm_eps = metadata.real("attention.layer_norm_epsilon", 1e-5);
  metadata.value("context_length");        // of which RWKV has none
  metadata.value("attention.head_count");  // there is 0
  return model;
}

}  // namespace

PublishedModel recognise_gguf(const TensorSource& source, const ImportOptions& options) {
  const GgufArchitecture& known = find_architecture(source);
  require_whole(source);
  const Metadata metadata(source, known.name);
  for (const auto& [name, allowed] : known.only) metadata.only(name, allowed);
  const auto view = published_view(source, known.names);
  PublishedModel model;
  if (known.model_type.empty()) {
    model = recognise_gguf_rwkv(source, *view, metadata, known.name, options);
  } else {
    if (options.groupnorm_eps) throw UsageError("--groupnorm-eps: is for RWKV alone; leave it out");
    model = recognise_hugging_face(*view, make_config(source, known, metadata));
  }
  model.layout = foreign_layout(model.layout, known.names);
  for (TensorRule& rule : model.layout.rules)
    if (rule.form == Form::kPaired) rule.head_rows = model.config.dim / std::max<Index>(1, model.config.heads);
  metadata.note_unused(model.notes);
  return model;
}

}  // namespace quipu
