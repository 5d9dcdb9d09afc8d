#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "store/tensor_source.h"

namespace quipu {

/// A file in which every tensor stands in one piece, in row-major order.
class MappedSource : public TensorSource {
 public:
  std::optional<std::span<const std::byte>> stored(const TensorInfo& tensor) const override;

 protected:
  MappedSource(MappedFile file, std::string format);

  const MappedFile& file() const { return file_; }

  /// Adds a tensor whose bytes begin at `offset` of the file.
  void add_stored(std::string name, TensorType type, std::vector<std::int64_t> shape, std::uint64_t offset);

  /// Call once all are added: `finish_tensors`, and refuses tensors that overlap.
  void finish_stored();

  void read_values(const TensorInfo& tensor, std::span<float> values) const override;

 private:
  MappedFile file_;
  std::deque<std::uint64_t> offsets_;
};

}  // namespace quipu
