#pragma once
#include <string>
#include <utility>
#include <vector>

#include "exchange/foreign_names.h"

namespace quipu {

/// A family of models as llama.cpp's GGUF files hold it, beside the published one of hugging_face.h or rwkv_layout.h.
struct GgufArchitecture {
  std::string name;        ///< general.architecture
  std::string model_type;  ///< of config.json; empty: RWKV
  /// Keys of config.json, and what is behind the architecture's name in the metadata ("attention.head_count").
  std::vector<std::pair<std::string, std::string>> keys;
  ForeignNames names;
  /// Metadata with which the model is another one: only this value may be there, as it is printed.
  std::vector<std::pair<std::string, std::string>> only{};
};

const std::vector<GgufArchitecture>& gguf_architectures();

}  // namespace quipu
