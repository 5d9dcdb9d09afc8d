#pragma once
#include <optional>
#include <string>
#include <vector>

#include "exchange/tensor_layout.h"
#include "models/config.h"
#include "store/tensor_source.h"

namespace quipu {

/// What the user adds to what a file says.
struct ImportOptions {
  std::optional<double> groupnorm_eps{};  ///< of RWKV-5's to RWKV-7's heads
  bool skip_unknown = false;              ///< leave out tensors that the model has no place for
};

/// A model of another program: how to build it here, and where its parameters are.
struct PublishedModel {
  std::string architecture;  ///< "RWKV-5.2", "gpt2", ...
  ModelConfig config;
  TensorLayout layout;
  std::vector<std::string> notes;  ///< what was decided where the file leaves it open
};

}  // namespace quipu
