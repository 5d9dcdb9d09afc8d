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

}  // namespace quipu
