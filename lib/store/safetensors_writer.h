#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace quipu {

/// Writes a safetensors file of float32 tensors, one after the other; it appears under its path by `commit`. Failures
/// of the system are InputErrors with the file's name.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  /// All tensors, in the order in which their numbers will come, and texts for the header's metadata.
  SafetensorsWriter(const std::string& path, std::vector<Tensor> tensors,
                    const std::vector<std::pair<std::string, std::string>>& metadata);

  /// The numbers of the next tensor, in row-major order. Throws ShapeError where they are not as many as its shape
  /// says.
  void write(std::span<const float> numbers);
  /// Throws InternalError before the last tensor.
  void commit();

 private:
  OutputFile file_;
  std::vector<Tensor> tensors_;
  std::size_t written_ = 0;
};

}  // namespace quipu
