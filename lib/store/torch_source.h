#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/pickle.h"
#include "store/tensor_source.h"
#include "store/zip_archive.h"

namespace quipu {

/// The bytes of one storage: in place, or as an entry that must be expanded.
struct TorchStorage {
  std::span<const std::byte> bytes;
  const ZipEntry* deflated = nullptr;
};

/// What a pickle says of a storage.
struct TorchStorageInfo {
  std::string_view key;
  TensorType type = TensorType::kU8;
  std::uint64_t elements = 0;

  std::uint64_t bytes() const { return elements * tensor_block(type).bytes; }
};

/// `value` is of kind kStorage.
TorchStorageInfo storage_info(const Pickle& pickle, const PickleValue& value);

/// A tensor of a PyTorch file as the pickle says: a window on a storage.
struct TorchTensor {
  TorchStorageInfo storage;
  TensorType type;
  std::int64_t offset;  // in numbers
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

/// How much memory a file's pickle and what is made of it may take.
std::uint64_t torch_memory(std::uint64_t file_bytes);

/// The tensors of a PyTorch file, by their path in the saved dictionaries and lists ("model.blocks.0.weight"); numbers
/// and texts among them become metadata. A tensor may be strided, and share its storage with others.
class TorchSource : public TensorSource {
 public:
  std::optional<std::span<const std::byte>> stored(const TensorInfo& tensor) const override;

 protected:
  using TensorSource::TensorSource;

  /// Adds all tensors of a pickle. `find_storage` returns the bytes of a storage, at least as many as it has, or
  /// throws.
  using FindStorage = std::function<TorchStorage(const TorchStorageInfo&)>;
  void add_pickle(const Pickle& pickle, const FindStorage& find_storage);

  void read_values(const TensorInfo& tensor, std::span<float> values) const override;

  /// The archive of deflated storages.
  virtual const ZipArchive* archive() const { return nullptr; }

 private:
  class Walk;

  struct Window {
    TorchStorage storage;
    std::uint64_t start;                // in bytes
    std::vector<std::int64_t> strides;  // in numbers; none: row-major
  };

  void add_window(std::string name, const TorchTensor& tensor, const FindStorage& find_storage);
  void read_strided(const TensorInfo& tensor, const Window& window, std::span<float> values) const;
  void read_deflated(const TensorInfo& tensor, const Window& window, std::span<float> values) const;

  std::deque<Window> windows_;
};

}  // namespace quipu
