#pragma once
#include <memory>
#include <span>
#include <string>

#include "mixers/mixer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// One line of the registry.
struct MixerEntry {
  const char* name;
  const char* full_name;
  const char* source;
  bool channel;  ///< mixes channels within a token
  std::unique_ptr<Mixer> (*make)(const MixerSpec& spec);
};

/// All mixers, in the order of mixers.def.
std::span<const MixerEntry> registry();

/// Throws UsageError, naming those there are.
const MixerEntry& find_mixer(const std::string& name, bool channel);

}  // namespace quipu::inline QUIPU_REAL_NS
