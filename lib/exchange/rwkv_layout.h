#pragma once
#include <optional>

#include "exchange/published_model.h"

namespace quipu {

/// Whether a file holds an RWKV model under the names of its published checkpoints (`blocks.0.att.key.weight`).
bool is_rwkv(const TensorSource& source);

/// Version (4, 5.1, r3r2, 5.2, 6, 7), sizes and layout of such a model, told from names and shapes. `ggmf` files of
/// rwkv.cpp hold the same models with other shapes and numbers. Throws InputError where tensors contradict each other.
PublishedModel recognise_rwkv(const TensorSource& source, const ImportOptions& options);

/// The published layout of a model of ours; none where it is no RWKV as published.
std::optional<TensorLayout> rwkv_layout(const ModelConfig& config);

/// The epsilon of the heads' norm among the metadata of a published file, which says it nowhere else.
inline constexpr const char* kGroupNormKey = "groupnorm_eps";

}  // namespace quipu
