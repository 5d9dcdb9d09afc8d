#include "cli/mixer_list.h"

#include <algorithm>

#include "mixers/registry.h"

namespace quipu {
namespace {

const char* memory_name(Memory memory) {
  switch (memory) {
    case Memory::fixed:
      return "fixed";
    case Memory::growing:
      return "growing";
    case Memory::fixed_length:
      return "fixed length";
  }
  return "";
}

std::unique_ptr<Mixer> build(const MixerEntry& entry, const ModelConfig& config, Options& options,
                             SharedParameters& shared) {
  return entry.make({config.dim, entry.channel ? 0 : config.heads, config.length, {0, config.layers}, options, shared});
}

const MixerEntry& entry_of(const std::string& name) {
  for (const MixerEntry& entry : registry())
    if (name == entry.name) return entry;
  return find_mixer(name, false);  // throws, naming those there are
}

}  // namespace

std::string mixers_text() {
  std::string text;
  for (const bool channel : {false, true}) {
    text += channel ? "\n\nChannel mixers (--channel-mixer):\n" : "Token mixers (--mixer), with their memory:\n";
    for (const MixerEntry& entry : registry()) {
      if (entry.channel != channel) continue;
      Options options;
      SharedParameters shared;
      const auto mixer = build(entry, {}, options, shared);
      text += fmt::format(" {:<18}{}, {}", entry.name, entry.full_name, entry.source);
      text += channel ? "\n" : fmt::format(" ({})\n", memory_name(mixer->memory()));
    }
  }
  return text + "\n--describe-mixer NAME shows the options of one, which --set takes.";
}

std::vector<std::string> names_in_pattern(const std::string& pattern) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find(',', begin), pattern.size());
    const std::string word = pattern.substr(begin, end - begin);
    const std::size_t letters = word.find_first_not_of("0123456789");
    const bool counted = letters != std::string::npos && letters > 0 && word[letters] == 'x';
    names.push_back(counted ? word.substr(letters + 1) : word);
    begin = end + 1;
  }
  return names;
}

bool pattern_takes(const std::string& pattern, const std::string& channel_mixer, const std::string& key) {
  for (const std::string& name : names_in_pattern(pattern)) {
    SharedParameters shared;
    Options options;
    const std::string suits = build(find_mixer(name, false), {}, options, shared)->block().channel_mixer;
    const std::string channel = channel_mixer.empty() ? suits : channel_mixer;
    std::vector<std::pair<std::string, Options>> mixers{{name, options}};
    if (channel != "none") {
      Options of_channel;
      build(find_mixer(channel, true), {}, of_channel, shared);
      mixers.emplace_back(channel, of_channel);
    }
    for (const auto& [mixer, its] : mixers)
      for (const Options::Described& option : its.described())
        if (key == option.key || key == mixer + "." + option.key) return true;
  }
  return false;
}

void print_mixers(const ModelConfig& config, bool json) {
  Table table({"name", "mixes", "memory", "state a layer", "bytes", "cost a token", "exact", "full name", "source"});
  Json list = Json::array();
  for (const MixerEntry& entry : registry()) {
    Options options;
    SharedParameters shared;
    const auto mixer = build(entry, config, options, shared);
    const Index bytes = mixer->state_bytes(config.length);
    const std::string formula = mixer->initial_state(1).formula();
    const double cost = mixer->mixing_cost(config.length);
    const char* const mixes = entry.channel ? "channels" : "tokens";
    const std::string exact = mixer->memory() == Memory::fixed_length
                                  ? fmt::format("to {} tokens", grouped(config.length))
                                  : std::string("in all forms");
    table.row({entry.name, mixes, memory_name(mixer->memory()), formula, grouped(bytes),
               grouped(static_cast<Index>(cost)), exact, entry.full_name, entry.source});
    list.push_back({{"name", entry.name},
                    {"full_name", entry.full_name},
                    {"source", entry.source},
                    {"mixes", mixes},
                    {"memory", memory_name(mixer->memory())},
                    {"state", formula},
                    {"state_bytes_per_layer", bytes},
                    {"mixing_multiply_adds_per_token", cost},
                    {"exact", exact}});
  }
  if (!json) {
    print_table(table);
    print_text(fmt::format(
        "\nOf one sequence after {} tokens, at width {} (change them with --seq-len, --dim, --heads). "
        "State: float32 numbers of a\n"
        "lane, in the letters T time, D width, H heads, K and V key and value width of a head, M slots, features or\n"
        "cached rows, S rows of a segment, N state width, C channels, W convolution width, n tokens so far; a count "
        "has 8\n"
        "bytes. Cost: multiply-adds of the mixing itself, without projections. Exact: the parallel, the chunkwise and "
        "the\n"
        "recurrent form agree, states included.\n",
        grouped(config.length), config.dim));
    return;
  }
  Json report = json_report("mixers", 1);
  report["dim"] = config.dim;
  report["length_tokens"] = config.length;
  report["mixers"] = list;
  print_json(report);
}

void print_mixer(const std::string& name, const ModelConfig& config, bool json) {
  const MixerEntry& entry = entry_of(name);
  Options options;
  SharedParameters shared;
  const auto mixer = build(entry, config, options, shared);
  Table table({"option", "default", "meaning"});
  Json list = Json::array();
  for (const Options::Described& option : options.described()) {
    table.row({option.key, option.value, option.help});
    list.push_back({{"key", option.key}, {"default", option.value}, {"help", option.help}});
  }
  if (json) {
    Json report = json_report("mixer", 1);
    report["name"] = entry.name;
    report["full_name"] = entry.full_name;
    report["source"] = entry.source;
    report["mixes"] = entry.channel ? "channels" : "tokens";
    report["memory"] = memory_name(mixer->memory());
    report["options"] = list;
    print_json(report);
    return;
  }
  print_text(fmt::format("{}: {}, {}\nmixes {}; its memory is {}\n", entry.name, entry.full_name, entry.source,
                         entry.channel ? "channels" : "tokens", memory_name(mixer->memory())));
  if (!entry.channel) {
    const BlockDefaults block = mixer->block();
    print_text(fmt::format("stands with channel mixer {}, {}, positions {}, {} head\n", block.channel_mixer, block.norm,
                           block.positions, block.tied_head ? "tied" : "untied"));
  }
  if (options.described().empty()) return print_text("it has no options\n");
  print_text("\n");
  print_table(table);
}

}  // namespace quipu
