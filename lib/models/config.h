#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/real.h"

namespace quipu {

/// All that says how a model is built; a checkpoint holds it as JSON. Empty texts and zeros mean "as suits the mixer";
/// a model that has been built gives its configuration back with all of them filled in.
struct ModelConfig {
  Index vocab = 0;
  Index dim = 256;
  Index layers = 4;
  Index heads = 0;
  /// Tokens of a training window or segment: the context of learned positions and of mixers of fixed length.
  Index length = 512;
  /// Mixer names, repeated up the stack, as in "gsa" or "3xgsa,attention".
  std::string mixer = "gsa";
  std::string channel_mixer;  ///< a channel mixer's name, or "none"
  std::string norm;           ///< layernorm, rmsnorm
  double norm_eps = 1e-5;
  std::string norm_place;      ///< pre: x += f(norm x), post: x = norm(x + f(x))
  std::string final_norm;      ///< none, or the kind of the norm before the head
  std::string positions;       ///< none, learned, sinusoidal (added to the embeddings)
  std::string head;            ///< tied, untied
  std::string head_bias;       ///< none, or bias
  std::string embedding_norm;  ///< none, or the kind of a norm right after the embedding: layernorm, rmsnorm
  double embedding_scale = 0;  ///< 0: as suits the mixer and the positions, sqrt(dim) or 1
  /// Memory tokens of the Recurrent Memory Transformer around every segment of `length` tokens; 0: no segments.
  Index memory_tokens = 0;
  std::string memory_mask;   ///< causal, or blocks: memory tokens of one block see one another
  std::string memory_state;  ///< fresh: the mixers start anew with every segment; carried: their states go on
  /// Options of mixers: "slots" for every mixer that has it, "gsa.slots" for one.
  std::map<std::string, std::string> options;

  bool operator==(const ModelConfig&) const = default;
};

/// "gpt2" or "transformer++": the published block around attention. Sets only what the preset says.
/// Throws UsageError for another name.
void apply_preset(ModelConfig& config, const std::string& preset);

/// Puts options of mixers, each KEY=VALUE, in place of those that the configuration has; one for all mixers ("slots")
/// outweighs those for one ("gsa.slots"). Throws UsageError for what is no KEY=VALUE.
void set_options(ModelConfig& config, const std::vector<std::string>& settings);

/// The mixer of every layer. Throws UsageError where the pattern is malformed or its length does not divide `layers`.
std::vector<std::string> expand_pattern(const std::string& pattern, Index layers);

std::string to_json(const ModelConfig& config);
/// Throws InputError for a text that is no configuration.
ModelConfig config_from_json(const std::string& json);

}  // namespace quipu
