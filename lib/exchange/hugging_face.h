#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exchange/published_model.h"

namespace quipu {

/// What a key of config.json is to us.
enum class KeyKind {
  kCount,     ///< a whole number
  kReal,      ///< a number
  kFlag,      ///< true or false
  kTied,      ///< true: the head is the embedding
  kHeads,     ///< the number of heads, where `ours` is the option that says how wide one is
  kConstant,  ///< only one value is possible here
};

/// One key of config.json and the field of ModelConfig ("dim") or mixer option ("gsa.slots") that it sets.
struct ConfigKey {
  std::string key;
  KeyKind kind;
  std::string ours{};
  /// What a missing key means, as JSON; empty: it must be there; "null": what is usual here. Of a constant: its value.
  std::string absent{};
  /// An option that must be true for this one to exist.
  std::string needs{};
};

/// A family of models as Hugging Face's transformers and flash-linear-attention store them: config.json, and tensors
/// under published names. All that is known of one stands here, for reading and for writing.
struct Architecture {
  std::string model_type;
  std::string class_name;
  std::string mixer;
  std::vector<ConfigKey> keys;
  /// Fields and options that every such model has; of an option, the value may be kAsManyAsHeads.
  std::vector<std::pair<std::string, std::string>> implied;
  TensorLayout layout;
  /// What the names begin with, and may lack.
  std::string prefix{};
  /// Where config.json says no width of the gated MLP: 2/3 of this times the model's, in steps of 256. 0: no such MLP.
  double hidden_ratio = 0;
  /// Heads of a model of ours that says none; negative: channels a head.
  long usual_heads = 0;
};

inline constexpr const char* kAsManyAsHeads = "=heads";

const std::vector<Architecture>& architectures();

/// A model's configuration as JSON, and what errors call it and its keys (else: what they are called).
struct ConfigText {
  std::string json;
  std::string called = "config.json";
  std::map<std::string, std::string> keys{};
};

/// The model that a configuration describes. Throws InputError for an architecture or a value that is not read here.
PublishedModel recognise_hugging_face(const TensorSource& source, const ConfigText& config);

/// A model of ours as config.json says it.
struct PublishedConfig {
  const Architecture* architecture;
  nlohmann::ordered_json json;
};

/// None where the configuration is of no architecture above; then `why` says what is in the way.
std::optional<PublishedConfig> hugging_face_config(const ModelConfig& config, std::string& why);

}  // namespace quipu
