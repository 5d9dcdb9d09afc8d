#include "models/config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace quipu {

void apply_preset(ModelConfig& config, const std::string& preset) {
  config.mixer = "attention";
  if (preset == "gpt2") {
    config.channel_mixer = "mlp";
    config.norm = "layernorm";
    config.positions = "learned";
    config.head = "tied";
    config.options.insert({{"attention.rope", "none"}, {"attention.bias", "true"}, {"mlp.activation", "gelu"}});
  } else if (preset == "transformer++") {
    config.channel_mixer = "swiglu";
    config.norm = "rmsnorm";
    config.positions = "none";
    config.head = "untied";
    config.options.insert({{"attention.rope", "half"}, {"attention.bias", "false"}});
  } else {
    throw UsageError("--preset {}: is unknown; there are gpt2, transformer++", preset);
  }
}

std::vector<std::string> expand_pattern(const std::string& pattern, Index layers) {
  std::vector<std::string> cycle;
  std::size_t begin = 0;
  while (begin <= pattern.size()) {
    std::size_t end = pattern.find(',', begin);
    if (end == std::string::npos) end = pattern.size();
    std::string name = pattern.substr(begin, end - begin);
    Index times = 1;
    if (const std::size_t digits = name.find_first_not_of("0123456789");
        digits != std::string::npos && digits > 0 && digits < 6 && name[digits] == 'x') {
      times = std::stol(name.substr(0, digits));
      name = name.substr(digits + 1);
    }
    if (name.empty() || times < 1)
      throw UsageError("--mixer {}: is no pattern of mixers; write a name, or names with counts as in 3xgsa,attention",
                       pattern);
    cycle.insert(cycle.end(), static_cast<std::size_t>(times), name);
    begin = end + 1;
  }
  const auto period = static_cast<Index>(cycle.size());
  if (layers % period != 0)
    throw UsageError("--mixer {}: repeats every {} layers, which does not divide the {} layers (--layers)", pattern,
                     period, layers);
  std::vector<std::string> stack;
  for (Index i = 0; i < layers; ++i) stack.push_back(cycle[static_cast<std::size_t>(i % period)]);
  return stack;
}

void set_options(ModelConfig& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--set {}: is not KEY=VALUE, as in slots=64", setting);
    const std::string key = setting.substr(0, equals);
    // An option for all mixers outweighs what a preset or --init says for one.
    if (key.find('.') == std::string::npos)
      std::erase_if(config.options, [&](const auto& option) { return option.first.ends_with("." + key); });
    config.options[key] = setting.substr(equals + 1);
  }
}

std::string to_json(const ModelConfig& c) {
  nlohmann::ordered_json json{{"vocab", c.vocab},
                              {"dim", c.dim},
                              {"layers", c.layers},
                              {"heads", c.heads},
                              {"length", c.length},
                              {"mixer", c.mixer},
                              {"channel_mixer", c.channel_mixer},
                              {"norm", c.norm},
                              {"norm_eps", c.norm_eps},
                              {"norm_place", c.norm_place},
                              {"final_norm", c.final_norm},
                              {"positions", c.positions},
                              {"head", c.head},
                              {"head_bias", c.head_bias},
                              {"embedding_norm", c.embedding_norm},
                              {"embedding_scale", c.embedding_scale},
                              {"memory_tokens", c.memory_tokens},
                              {"memory_mask", c.memory_mask},
                              {"memory_state", c.memory_state},
                              {"options", c.options}};
  return json.dump(2);
}

ModelConfig config_from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    ModelConfig c;
    json.at("vocab").get_to(c.vocab);
    json.at("dim").get_to(c.dim);
    json.at("layers").get_to(c.layers);
    json.at("heads").get_to(c.heads);
    json.at("length").get_to(c.length);
    json.at("mixer").get_to(c.mixer);
    json.at("channel_mixer").get_to(c.channel_mixer);
    json.at("norm").get_to(c.norm);
    json.at("norm_eps").get_to(c.norm_eps);
    json.at("positions").get_to(c.positions);
    json.at("head").get_to(c.head);
    // What files of earlier versions lack.
    c.embedding_norm = json.value("embedding_norm", "none");
    c.norm_place = json.value("norm_place", "pre");
    c.final_norm = json.value("final_norm", c.norm);
    c.head_bias = json.value("head_bias", "none");
    c.memory_tokens = json.value("memory_tokens", Index{0});
    c.memory_mask = json.value("memory_mask", "");
    c.memory_state = json.value("memory_state", "");
    json.at("embedding_scale").get_to(c.embedding_scale);
    json.at("options").get_to(c.options);
    return c;
  } catch (const nlohmann::json::exception& error) {
    throw InputError("configuration: is not one of a model ({}); was the file made by another version?", error.what());
  }
}

}  // namespace quipu
