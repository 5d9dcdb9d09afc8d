#pragma once
#include <string>

#include "cli/report.h"
#include "models/config.h"

namespace quipu {

/// `--list-mixers`: every mixer of the registry with its paper, whether it mixes tokens or channels, how its memory
/// behaves, and the bytes of a layer's state for a model of this width and these heads, after config.length tokens.
void print_mixers(const ModelConfig& config, bool json);

/// The same list in words, for the man page: names, sources and how the memory behaves.
std::string mixers_text();

/// `--describe-mixer`: the options of one mixer with their defaults and meaning. Throws UsageError for another name.
void print_mixer(const std::string& name, const ModelConfig& config, bool json);

/// The names in a pattern such as "3xgsa,attention".
std::vector<std::string> names_in_pattern(const std::string& pattern);

/// Whether `--set KEY=..` means something to a model of this pattern: whether one of its token mixers has the option,
/// or the channel mixer (empty: the one that suits). Throws UsageError for a mixer that there is not.
bool pattern_takes(const std::string& pattern, const std::string& channel_mixer, const std::string& key);

}  // namespace quipu
