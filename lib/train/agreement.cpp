#include "train/agreement.h"

#include <fmt/format.h>

#include <algorithm>

namespace quipu {
namespace {

std::map<std::string, std::string> settings_of(const ModelConfig& c) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  std::map<std::string, std::string> settings{{"vocabulary", text(c.vocab)},
                                              {"--dim", text(c.dim)},
                                              {"--layers", text(c.layers)},
                                              {"--heads", text(c.heads)},
                                              {"--seq-len", text(c.length)},
                                              {"--mixer", c.mixer},
                                              {"--channel-mixer", c.channel_mixer},
                                              {"--norm", c.norm},
                                              {"norm epsilon", text(c.norm_eps)},
                                              {"--positions", c.positions},
                                              {"--head", c.head},
                                              {"--norm-place", c.norm_place},
                                              {"--memory-tokens", text(c.memory_tokens)},
                                              {"embedding scale", text(c.embedding_scale)}};
  if (c.memory_tokens > 0)
    settings["--memory-tokens"] += fmt::format(" (mask {}, states {})", c.memory_mask, c.memory_state);
  for (const auto& [key, value] : c.options) settings["--set " + key] = value;
  return settings;
}

}  // namespace

std::vector<Difference> differences(const std::map<std::string, std::string>& here,
                                    const std::map<std::string, std::string>& there) {
  std::map<std::string, Difference> all;
  for (const auto& [key, value] : here) all[key] = {key, value, "none"};
  for (const auto& [key, value] : there) {
    Difference& difference = all.try_emplace(key, Difference{key, "none", ""}).first->second;
    difference.there = value;
  }
  std::vector<Difference> out;
  for (const auto& [key, difference] : all)
    if (difference.here != difference.there) out.push_back(difference);
  return out;
}

std::vector<Difference> differences(const ModelConfig& here, const ModelConfig& there) {
  std::vector<Difference> all = differences(settings_of(here), settings_of(there));
  // A mixer's options follow from the mixer: the options of the model itself come first.
  std::stable_partition(all.begin(), all.end(), [](const Difference& d) { return !d.option.starts_with("--set"); });
  return all;
}

}  // namespace quipu
