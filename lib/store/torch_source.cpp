#include "store/torch_source.h"

#include <algorithm>
#include <cstring>

#include "store/byte_cursor.h"
#include "store/strided_walk.h"

namespace quipu {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 13;  // numbers decoded at a time

/// Whether the numbers follow each other in row-major order; axes of one number do not count.
bool is_row_major(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) {
    if (shape[axis] != 1 && strides[axis] != step) return false;
  }
  return true;
}

/// Whether the last number of a tensor, and so every one, lies inside its storage. Sizes are 0 or more.
bool lies_inside(const TorchTensor& tensor) {
  std::int64_t last = tensor.offset;
  if (last < 0) return false;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    std::int64_t span = 0;
    if (tensor.strides[axis] < 0 || __builtin_mul_overflow(tensor.shape[axis] - 1, tensor.strides[axis], &span) ||
        __builtin_add_overflow(last, span, &last)) {
      return false;
    }
  }
  return static_cast<std::uint64_t>(last) < tensor.storage.bytes() / tensor_block(tensor.type).bytes;
}

}  // namespace

void TorchSource::add_window(std::string tensor_name, const TorchTensor& tensor, const FindStorage& find_storage) {
  const TensorInfo& added = add_tensor(std::move(tensor_name), tensor.type, tensor.shape);
  Window window{{}, 0, {}};
  if (tensor.strides.size() != tensor.shape.size()) {
    throw InputError("{}: tensor '{}' has {} axes and {} strides; get the file again", name(), shown_name(added.name),
                     tensor.shape.size(), tensor.strides.size());
  }
  if (added.elements() > 0) {
    if (!lies_inside(tensor)) {
      throw InputError(
          "{}: tensor '{}' ({}, from number {}) reaches beyond its storage '{}' of {} bytes; get the file "
          "again",
          name(), shown_name(added.name), type_and_shape(added), tensor.offset, shown_name(tensor.storage.key),
          tensor.storage.bytes());
    }
    if (added.bytes() > tensor.storage.bytes()) {
      throw InputError(
          "{}: tensor '{}' has {} numbers in a storage of {} bytes: it repeats them; save a copy made by "
          ".contiguous()",
          name(), shown_name(added.name), added.elements(), tensor.storage.bytes());
    }
    window.storage = find_storage(tensor.storage);
    window.start = static_cast<std::uint64_t>(tensor.offset) * tensor_block(tensor.type).bytes;
    if (!is_row_major(tensor.shape, tensor.strides)) {
      window.strides = tensor.strides;
      if (window.storage.deflated != nullptr) {
        throw InputError(
            "{}: tensor '{}' is strided, and its storage is compressed; save the file anew with torch.save", name(),
            shown_name(added.name));
      }
    }
  }
  windows_.push_back(std::move(window));
}

std::optional<std::span<const std::byte>> TorchSource::stored(const TensorInfo& tensor) const {
  const Window& window = windows_[index_of(tensor)];
  if (!window.strides.empty() || window.storage.deflated != nullptr) return std::nullopt;
  return window.storage.bytes.subspan(window.start, tensor.bytes());
}

void TorchSource::read_values(const TensorInfo& tensor, std::span<float> values) const {
  const Window& window = windows_[index_of(tensor)];
  if (window.storage.deflated != nullptr) return read_deflated(tensor, window, values);
  if (!window.strides.empty()) return read_strided(tensor, window, values);
  const std::span<const std::byte> bytes = window.storage.bytes.subspan(window.start, tensor.bytes());
  decode_floats(tensor.type, bytes, values);
  if (archive() != nullptr) archive()->file().let_go(bytes);
}

void TorchSource::read_strided(const TensorInfo& tensor, const Window& window, std::span<float> values) const {
  const std::size_t width = tensor_block(tensor.type).bytes;
  const std::byte* first = window.storage.bytes.data() + window.start;
  std::vector<std::byte> bytes(std::min(kPiece, values.size()) * width);
  StridedWalk walk(tensor.shape, window.strides);
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    const std::size_t count = std::min(kPiece, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * width, first + walk.next() * width, width);
    decode_floats(tensor.type, std::span(bytes).first(count * width), values.subspan(begin, count));
  }
}

void TorchSource::read_deflated(const TensorInfo& tensor, const Window& window, std::span<float> values) const {
  const std::size_t width = tensor_block(tensor.type).bytes;
  ZipReader reader(*archive(), *window.storage.deflated);
  std::vector<std::byte> bytes(kPiece * width);
  for (std::uint64_t left = window.start; left > 0;) {
    const std::uint64_t count = std::min<std::uint64_t>(left, bytes.size());
    reader.read(std::span(bytes).first(count));
    left -= count;
  }
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    const std::size_t count = std::min(kPiece, values.size() - begin);
    const auto part = std::span(bytes).first(count * width);
    reader.read(part);
    decode_floats(tensor.type, part, values.subspan(begin, count));
  }
}

}  // namespace quipu
