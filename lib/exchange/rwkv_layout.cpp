#include "exchange/rwkv_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace quipu {
namespace {

constexpr const char* kFirst = "blocks.0.att.";
constexpr const char* kAtt = "blocks.{}.att.";
constexpr const char* kMixer = "layers.{}.mixer.";

using Dialect = RwkvDialect;

/// A version as mixer and option say it.
struct Version {
  const char* name;
  const char* mixer;
  const char* option;  // of rwkv5
};
constexpr std::array<Version, 6> kVersions{{{"4", "rwkv4", ""},
                                            {"5.1", "rwkv5", "5.1"},
                                            {"r3r2", "rwkv5", "r3r2"},
                                            {"5.2", "rwkv5", "5.2"},
                                            {"6", "rwkv6", ""},
                                            {"7", "rwkv7", ""}}};

const Version& version_of(std::string_view name) {
  return *std::ranges::find(kVersions, name, [](const Version& v) { return std::string_view(v.name); });
}

const TensorInfo* find_att(const TensorSource& source, const char* name) {
  return source.find(kFirst + std::string(name));
}

void add_heads_names(TensorLayout& layout, bool gate) {
  layout.add_each(kAtt, kMixer, {"receptance.weight", "key.weight", "value.weight"});
  if (gate) layout.add_each(kAtt, kMixer, {"gate.weight"});
  layout.add_each(kAtt, kMixer, {"output.weight", "ln_x.weight", "ln_x.bias"});
}

/// One map of a low-rank pair: published as [in,out], which ggmf files and we have as [out,in].
void add_map(TensorLayout& layout, const std::string& name, Form form) {
  layout.rules.push_back({kAtt + name, {kMixer + name + ".weight"}, form});
}

void add_vectors(TensorLayout& layout, const Dialect& dialect, const std::vector<std::string>& names) {
  layout.add_each(kAtt, kMixer, names, dialect.any_shape ? Form::kAnyShape : Form::kSame);
}

void add_stack(TensorLayout& layout, const char* name, const std::vector<std::string>& parts) {
  TensorRule stack{kAtt + std::string(name), {}};
  for (const std::string& part : parts) stack.ours.push_back(kMixer + part);
  layout.rules.push_back(std::move(stack));
}

void add_number_rule(TensorLayout& layout, const char* name, Numbers numbers) {
  layout.rules.push_back({kAtt + std::string(name), {kMixer + std::string(name)}, Form::kAnyShape, numbers});
}

void add_att4(TensorLayout& layout, const Dialect& dialect) {
  if (dialect.applied_decays)
    add_number_rule(layout, "time_decay", Numbers::kMinusExp);
  else
    add_vectors(layout, dialect, {"time_decay"});
  add_vectors(layout, dialect, {"time_first", "time_mix_k", "time_mix_v", "time_mix_r"});
  layout.add_each(kAtt, kMixer, {"key.weight", "value.weight", "receptance.weight", "output.weight"});
}

void add_att5(TensorLayout& layout, const Dialect& dialect, std::string_view version) {
  const bool gate = version != "5.1", plain = !dialect.applied_decays;
  if (plain)
    add_vectors(layout, dialect, {"time_decay"});
  else
    add_number_rule(layout, "time_decay", Numbers::kExpMinusExp);
  if (plain || gate)
    add_vectors(layout, dialect, {gate ? "time_faaaa" : "time_first"});
  else
    add_number_rule(layout, "time_first", Numbers::kExp);
  add_vectors(layout, dialect, {"time_mix_k", "time_mix_v", "time_mix_r"});
  if (gate) add_vectors(layout, dialect, {"time_mix_g"});
  add_heads_names(layout, gate);
}

void add_att6(TensorLayout& layout, const Dialect& dialect) {
  const bool plain = !dialect.maps_as_ours;
  const Form map = plain ? Form::kTransposed : Form::kSame;
  const std::vector<std::string> maas{"time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"};
  add_vectors(layout, dialect, {"time_maa_x"});
  if (dialect.stacked_maas)
    add_stack(layout, "time_maa_wkvrg", maas);
  else
    add_vectors(layout, dialect, maas);
  add_map(layout, "time_maa_w1", map);
  layout.add_each(kAtt, kMixer, {"time_maa_w2"}, plain ? Form::kSame : Form::kTransposed);
  add_vectors(layout, dialect, {"time_decay"});
  add_map(layout, "time_decay_w1", map);
  add_map(layout, "time_decay_w2", map);
  add_vectors(layout, dialect, {"time_faaaa"});
  add_heads_names(layout, true);
}

void add_att7(TensorLayout& layout, const Dialect& dialect) {
  const Form map = dialect.maps_as_ours ? Form::kSame : Form::kTransposed;
  const std::vector<std::string> shifts{"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"};
  if (dialect.stacked_shifts)
    add_stack(layout, "x_rwkvag", shifts);
  else
    add_vectors(layout, dialect, shifts);
  for (const std::string name : {"w", "a", "v", "g"}) {
    if (name != "g")
      layout.rules.push_back(
          {kAtt + name + "0", {kMixer + name + "2.bias"}, dialect.any_shape ? Form::kAnyShape : Form::kRow});
    add_map(layout, name + "1", map);
    add_map(layout, name + "2", map);
    if (name == "v")
      for (const char* digit : {"0", "1", "2"})
        layout.unused.push_back({kFirst + name + digit, "the first layer's values are its own"});
  }
  add_vectors(layout, dialect, {"k_k", "k_a", "r_k"});
  add_heads_names(layout, false);
}

TensorLayout make_layout(std::string_view version, const Dialect& dialect) {
  TensorLayout layout;
  layout.add_weight("emb", "embedding");
  layout.add_affine("blocks.0.ln0", "embedding_norm");
  layout.add_affine("blocks.{}.ln1", "layers.{}.mixer_norm");
  layout.add_affine("blocks.{}.ln2", "layers.{}.channel_norm");
  if (version == "4") add_att4(layout, dialect);
  if (version == "5.1" || version == "r3r2" || version == "5.2") add_att5(layout, dialect, version);
  if (version == "6") add_att6(layout, dialect);
  if (version == "7") add_att7(layout, dialect);
  const std::string ffn = "blocks.{}.ffn.", channel = "layers.{}.channel.";
  const std::string mix = version == "7" ? "x_" : version == "6" ? "time_maa_" : "time_mix_";
  layout.add_each(ffn, channel, {mix + "k"});
  if (version != "7") layout.add_each(ffn, channel, {mix + "r", "receptance.weight"});
  layout.add_each(ffn, channel, {"key.weight", "value.weight"});
  layout.add_affine("ln_out", "norm");
  layout.add_weight("head", "head");
  if (dialect.halved_every > 0)
    for (TensorRule& rule : layout.rules)
      if (rule.published == kAtt + std::string("output.weight") || rule.published == ffn + "value.weight")
        rule.numbers = Numbers::kHalved, rule.halved_every = dialect.halved_every;
  return layout;
}

std::string tell_version(const TensorSource& source, Index dim) {
  if (find_att(source, "k_k")) return "7";
  if (find_att(source, "time_maa_x")) return "6";
  if (!find_att(source, "ln_x.weight")) return "4";
  if (!find_att(source, "gate.weight")) return "5.1";
  const TensorInfo& decay = source.tensor("blocks.0.att.time_decay");
  return decay.elements() == static_cast<std::uint64_t>(dim) ? "5.2" : "r3r2";
}

/// Extent of an axis of a tensor; negative: from the end.
Index extent(const TensorSource& source, const std::string& name, int axis) {
  const TensorInfo& tensor = source.tensor(name);
  const int rank = static_cast<int>(tensor.shape.size()), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    throw InputError("{}: {} is {}, which has too few axes; get the file again", source.name(), name,
                     type_and_shape(tensor));
  return tensor.shape[static_cast<std::size_t>(at)];
}

Index tell_heads(const TensorSource& source, const std::string& version, Index head_width, Index dim) {
  Index heads = 0;
  if (head_width > 0)
    heads = dim % head_width == 0 ? dim / head_width : 0;
  else if (version == "7")
    heads = extent(source, "blocks.0.att.r_k", -2);
  else
    heads = extent(source, version == "6" ? "blocks.0.att.time_faaaa" : "blocks.0.att.time_decay", 0);
  if (heads < 1 || dim % heads != 0)
    throw InputError("{}: its tensors say {} heads, which do not divide the width {}; get the file again",
                     source.name(), heads, dim);
  return heads;
}

Index count_layers(const TensorSource& source) {
  Index layers = 0;
  while (source.find(in_layer("blocks.{}.ln1.weight", layers)) != nullptr) ++layers;
  return layers;
}

/// What a ggmf header says of the model must be what its tensors say.
void check_header(const TensorSource& source, const char* key, Index told) {
  const MetadataValue* const value = source.metadata().find(key);
  const auto* const number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  if (number != nullptr && *number != told)
    throw InputError("{}: its header says {}={}, its tensors {}; get the file again", source.name(), key, *number,
                     told);
}

void set_option(ModelConfig& config, const std::string& name, Index value) {
  config.options[name] = std::to_string(value);
}

void set_ranks(const TensorSource& source, const std::string& version, const Dialect& dialect, ModelConfig& config) {
  // The narrow axis of a map that leads from the width: published last, in ggmf files first.
  const auto rank = [&](const std::string& name) {
    return extent(source, kFirst + name, dialect.maps_as_ours ? 0 : 1);
  };
  if (version == "6") {
    set_option(config, "rwkv6.mix_low_rank_dim", std::max<Index>(1, rank("time_maa_w1") / 5));
    set_option(config, "rwkv6.decay_low_rank_dim", rank("time_decay_w1"));
  }
  if (version != "7") return;
  set_option(config, "rwkv7.decay_low_rank_dim", rank("w1"));
  set_option(config, "rwkv7.a_low_rank_dim", rank("a1"));
  set_option(config, "rwkv7.gate_low_rank_dim", rank("g1"));
  if (config.layers < 2 && find_att(source, "v1") == nullptr) return;
  const std::string of_values = config.layers < 2 ? "blocks.0.att.v1" : "blocks.1.att.v1";
  set_option(config, "rwkv7.v_low_rank_dim", extent(source, of_values, dialect.maps_as_ours ? 0 : 1));
}

/// The epsilon of the heads' norm: the user's, the file's own, or that of the program whose files these are.
void set_epsilon(const TensorSource& source, const Dialect& dialect, const ImportOptions& options,
                 PublishedModel& model, const std::string& mixer) {
  double eps = dialect.groupnorm_eps;
  std::string why = dialect.groupnorm_why;
  if (source.format() == "ggmf" && mixer == "rwkv5") eps = 1e-5, why = "as rwkv.cpp computes RWKV-5";
  if (const MetadataValue* const value = source.metadata().find(kGroupNormKey)) {
    const auto* const text = std::get_if<std::string>(value);
    char* end = nullptr;
    if (text != nullptr) eps = std::strtod(text->c_str(), &end), why = "as the file says";
    if (text == nullptr || end == text->c_str() || !(eps > 0))
      throw InputError("{}: its {} is no number above 0; correct it or give --groupnorm-eps", source.name(),
                       kGroupNormKey);
  }
  if (options.groupnorm_eps) eps = *options.groupnorm_eps, why = "as --groupnorm-eps says";
  model.config.options[mixer + ".groupnorm_eps"] = fmt::format("{}", eps);
  model.notes.push_back(fmt::format("epsilon of the heads' norm: {}, {}", eps, why));
}

}  // namespace

bool is_rwkv(const TensorSource& source) {
  return source.find("emb.weight") != nullptr && find_att(source, "key.weight") != nullptr;
}

PublishedModel recognise_rwkv(const TensorSource& source, const ImportOptions& options) {
  Dialect dialect;
  if (source.format() == "ggmf")
    dialect.maps_as_ours = dialect.any_shape = dialect.applied_decays = dialect.stacked_shifts = true;
  return recognise_rwkv(source, std::move(dialect), options);
}

PublishedModel recognise_rwkv(const TensorSource& source, Dialect dialect, const ImportOptions& options) {
  PublishedModel model;
  ModelConfig& config = model.config;
  config.vocab = extent(source, "emb.weight", 0);
  config.dim = extent(source, "emb.weight", 1);
  config.layers = count_layers(source);
  if (config.layers < 1)
    throw InputError("{}: lacks blocks.0.ln1.weight, which an RWKV model has; is the file whole?", source.name());
  check_header(source, "n_vocab", config.vocab);
  check_header(source, "n_embed", config.dim);
  check_header(source, "n_layer", config.layers);
  const std::string version = tell_version(source, config.dim);
  const Version& known = version_of(version);
  model.architecture = "RWKV-" + version;
  config.mixer = known.mixer;
  config.channel_mixer = "rwkv_channel";
  config.norm = config.embedding_norm = "layernorm";
  config.positions = "none";
  config.head = "untied";
  config.options["rwkv_channel.version"] = version == "6" || version == "7" ? version : "4";
  set_option(config, "rwkv_channel.dim_ffn", extent(source, "blocks.0.ffn.key.weight", 0));
  if (*known.option != '\0') config.options["rwkv5.version"] = known.option;
  if (version != "4") {
    config.heads = tell_heads(source, version, dialect.head_width, config.dim);
    set_epsilon(source, dialect, options, model, known.mixer);
  } else if (options.groupnorm_eps) {
    throw UsageError("--groupnorm-eps: RWKV-4 has no such norm; leave it out");
  }
  set_ranks(source, version, dialect, config);
  dialect.stacked_maas = find_att(source, "time_maa_wkvrg") != nullptr;
  model.layout = make_layout(version, dialect);
  return model;
}

std::optional<TensorLayout> rwkv_layout(const ModelConfig& config) {
  if (config.channel_mixer != "rwkv_channel" || config.norm != "layernorm" || config.embedding_norm != "layernorm" ||
      config.positions != "none" || config.head != "untied")
    return std::nullopt;
  const auto chosen = config.options.find("rwkv5.version"), channel = config.options.find("rwkv_channel.version");
  for (const Version& version : kVersions) {
    if (config.mixer != version.mixer) continue;
    if (*version.option != '\0' && (chosen == config.options.end() || chosen->second != version.option)) continue;
    const std::string wanted =
        version.name == std::string("6") || version.name == std::string("7") ? version.name : "4";
    if (channel == config.options.end() || channel->second != wanted) return std::nullopt;
    return make_layout(version.name, {});
  }
  return std::nullopt;
}

}  // namespace quipu
