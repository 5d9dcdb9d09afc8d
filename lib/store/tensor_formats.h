#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "store/tensor_source.h"

namespace quipu {

/// One function a format: opens a file that is known to be of it. What is wrong with the file is an InputError.
std::unique_ptr<TensorSource> open_safetensors(MappedFile file);
std::unique_ptr<TensorSource> open_ggmf(MappedFile file);
std::unique_ptr<TensorSource> open_gguf(MappedFile file);
/// A zip archive: PyTorch's or NumPy's, by what is in it.
std::unique_ptr<TensorSource> open_zip_tensors(MappedFile file);
std::unique_ptr<TensorSource> open_legacy_torch(MappedFile file);
std::unique_ptr<TensorSource> open_checkpoint_tensors(InputFile file);

/// The index of a sharded model, JSON with a "weight_map": opens the shards that it names, all of which must be plain
/// names in `folder`, by `open_shard`. Every tensor of the index must be in its shard, and of the shards in the index.
using OpenShard = std::function<std::unique_ptr<TensorSource>(const std::string& path)>;
std::unique_ptr<TensorSource> open_sharded(const MappedFile& index, const std::string& folder,
                                           const OpenShard& open_shard);

/// Whether a file begins like the index of a sharded model.
bool is_model_index(const MappedFile& file);

/// Opens any single file of tensors in memory, by its content; neither an index nor HDF5.
std::unique_ptr<TensorSource> open_tensor_bytes(MappedFile file);

}  // namespace quipu
