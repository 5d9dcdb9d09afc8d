#include <filesystem>
#include <system_error>

#include "base/file_system.h"
#include "store/model_folder.h"
#include "store/tensor_formats.h"

namespace quipu {

namespace {

std::unique_ptr<TensorSource> open_content(InputFile input, const std::string& path) {
  if (input.is_hdf5()) return open_checkpoint_tensors(std::move(input));
  MappedFile file(std::move(input));
  if (!is_model_index(file)) return open_tensor_bytes(std::move(file));
  return open_sharded(file, split_path(path).first,
                      [](const std::string& shard) { return open_tensor_bytes(MappedFile(shard)); });
}

}  // namespace

std::unique_ptr<TensorSource> open_tensor_source(InputFile input, const std::string& path) {
  std::unique_ptr<TensorSource> source = open_content(std::move(input), path);
  const bool may_have_config = source->format() == "safetensors" || source->format().starts_with("PyTorch");
  if (may_have_config && path != "-") add_companions(split_path(path).first, source->metadata_);
  return source;
}

std::unique_ptr<TensorSource> open_tensor_source(const std::string& path) {
  std::error_code ignored;
  const bool folder = path != "-" && std::filesystem::is_directory(path, ignored);
  const std::string file = folder ? find_model_file(path) : path;
  return open_tensor_source(InputFile(file), file);
}

}  // namespace quipu
