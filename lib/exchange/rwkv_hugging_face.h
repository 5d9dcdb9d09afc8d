#pragma once
#include <string>

#include "exchange/published_model.h"

namespace quipu {

/// Whether a config.json is of RWKV as other programs than its own store it: transformers' "rwkv" (RWKV-4) or
/// flash-linear-attention's "rwkv7".
bool is_rwkv_config(const std::string& json);

/// Throws InputError where a config.json beside tensors under RWKV's own names is of another model.
void require_rwkv_config(const std::string& file, const std::string& json);

/// Such a model. It is told from its tensors, as a published one; the configuration must agree. Throws InputError where
/// it does not, or asks for what RWKV as published does not have.
PublishedModel recognise_rwkv_config(const TensorSource& source, const std::string& json, const ImportOptions& options);

}  // namespace quipu
