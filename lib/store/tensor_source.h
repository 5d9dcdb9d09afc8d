#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "store/source_metadata.h"
#include "store/tensor_type.h"

namespace quipu {

/// A tensor of a foreign file. Its shape is in row-major order, the outermost axis first, whatever the file does.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;  // the empty shape: one number
  TensorType type = TensorType::kF32;

  std::uint64_t elements() const;
  std::uint64_t bytes() const;
};

/// "f32 [3, 4]"
std::string type_and_shape(const TensorInfo& tensor);

/// Addresses of tensors stay as they are.
using TensorList = std::deque<TensorInfo>;

/// An open file of named tensors that another program wrote. Opening it checks everything but the numbers themselves;
/// nothing that the file says is executed, and no size is believed before it was compared with the file's. Holds less
/// memory than four times the file, and no tensor's numbers. May be used by several threads.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  const std::string& name() const { return name_; }
  /// "safetensors", "PyTorch", "PyTorch (legacy)", "ggmf", "GGUF", "NumPy", "quipu-checkpoint".
  const std::string& format() const { return format_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

  /// In the file's order; names are unique.
  const TensorList& tensors() const { return tensors_; }
  /// nullptr where there is none.
  const TensorInfo* find(std::string_view name) const;
  /// Throws InputError where there is none.
  const TensorInfo& tensor(std::string_view name) const;

  const SourceMetadata& metadata() const { return metadata_; }

  /// The numbers of one of `tensors()`, in row-major order; quantised ones expanded. `values` must hold
  /// tensor.elements(), else ShapeError. Throws InputError where the stored numbers are damaged.
  void read(const TensorInfo& tensor, std::span<float> values) const;
  std::vector<float> read(std::string_view name) const;

  /// The stored bytes of a tensor, tensor.bytes() of them, in row-major order, in place (not aligned); none where the
  /// file holds them in another order or compressed: then only `read` has them.
  virtual std::optional<std::span<const std::byte>> stored(const TensorInfo& tensor) const = 0;

 protected:
  TensorSource(std::string name, std::string format, std::uint64_t file_bytes)
      : name_(std::move(name)), format_(std::move(format)), file_bytes_(file_bytes) {}

  /// Adds a tensor, checking rank, sizes and their product. Returns it.
  TensorInfo& add_tensor(std::string name, TensorType type, std::vector<std::int64_t> shape);

  /// Call once all tensors are added: refuses names that occur twice, and tensors that together are out of proportion
  /// to the file.
  void finish_tensors();

  /// Where a tensor stands in `tensors()`.
  std::size_t index_of(const TensorInfo& tensor) const;

  virtual void read_values(const TensorInfo& tensor, std::span<float> values) const = 0;

  SourceMetadata metadata_;

 private:
  friend std::unique_ptr<TensorSource> open_tensor_source(InputFile input, const std::string& path);

  std::string name_;
  std::string format_;
  std::uint64_t file_bytes_;
  TensorList tensors_;
  std::vector<std::uint32_t> by_name_;
};

/// Opens a file of tensors (`-`: stdin): safetensors, PyTorch (zip and legacy), rwkv.cpp's ggmf, GGUF, NumPy .npz, or a
/// checkpoint of ours, told by its content; the index of a sharded model; or the folder of a model, whose index, single
/// file or shards are found by the usual names. A config.json beside safetensors or PyTorch files comes with the
/// metadata. Throws InputError: one line that names the file.
std::unique_ptr<TensorSource> open_tensor_source(const std::string& path);

/// The same for a file that is open already, at its start; `path` is its path, or `-`.
std::unique_ptr<TensorSource> open_tensor_source(InputFile input, const std::string& path);

}  // namespace quipu
