#include "mixers/registry.h"

#include <array>

namespace quipu::inline QUIPU_REAL_NS {

#define MIXER(name, full_name, source) std::unique_ptr<Mixer> make_##name(const MixerSpec& spec);
#define CHANNEL_MIXER(name, full_name, source) MIXER(name, full_name, source)
#include "mixers/mixers.def"
#undef MIXER
#undef CHANNEL_MIXER

namespace {

#define MIXER(name, full_name, source) MixerEntry{#name, full_name, source, false, make_##name},
#define CHANNEL_MIXER(name, full_name, source) MixerEntry{#name, full_name, source, true, make_##name},
const std::array kRegistry = {
#include "mixers/mixers.def"
};
#undef MIXER
#undef CHANNEL_MIXER

}  // namespace

std::span<const MixerEntry> registry() { return kRegistry; }

const MixerEntry& find_mixer(const std::string& name, bool channel) {
  std::string known;
  for (const MixerEntry& entry : kRegistry) {
    if (entry.channel != channel) continue;
    if (name == entry.name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw UsageError("{} {}: is unknown; there are {}", channel ? "--channel-mixer" : "--mixer", name, known);
}

}  // namespace quipu::inline QUIPU_REAL_NS
