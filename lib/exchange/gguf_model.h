#pragma once
#include "exchange/published_model.h"

namespace quipu {

/// The model that a GGUF file of llama.cpp describes in its metadata: Llama, GPT-2, Mamba, Mamba-2, RWKV-6 or RWKV-7.
/// Throws InputError for another architecture, where metadata and tensors disagree, and where the file asks for what
/// these models do not have here (experts, scaled rotary positions, parts in other files, ...).
PublishedModel recognise_gguf(const TensorSource& source, const ImportOptions& options);

}  // namespace quipu
