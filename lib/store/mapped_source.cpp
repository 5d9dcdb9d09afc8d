#include "store/mapped_source.h"

#include <algorithm>
#include <numeric>

#include "store/byte_cursor.h"

namespace quipu {

MappedSource::MappedSource(MappedFile file, std::string format)
    : TensorSource(file.name(), std::move(format), file.size()), file_(std::move(file)) {}

void MappedSource::add_stored(std::string name, TensorType type, std::vector<std::int64_t> shape,
                              std::uint64_t offset) {
  const TensorInfo& tensor = add_tensor(std::move(name), type, std::move(shape));
  if (offset > file_.size() || tensor.bytes() > file_.size() - offset) {
    throw InputError(
        "{}: is cut off or damaged: tensor '{}' has {} bytes at byte {}, and the file has {}; get the file "
        "again",
        file_.name(), shown_name(tensor.name), tensor.bytes(), offset, file_.size());
  }
  offsets_.push_back(offset);
}

void MappedSource::finish_stored() {
  std::vector<std::uint32_t> order(offsets_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [this](std::uint32_t index) { return tensors()[index].bytes() == 0; });
  std::ranges::sort(order, {}, [this](std::uint32_t index) { return offsets_[index]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = tensors()[order[i - 1]];
    const TensorInfo& after = tensors()[order[i]];
    if (offsets_[order[i - 1]] + before.bytes() > offsets_[order[i]]) {
      throw InputError(
          "{}: is damaged: tensor '{}' ends at byte {}, beyond the start of '{}' at byte {}; get the file "
          "again",
          file_.name(), shown_name(before.name), offsets_[order[i - 1]] + before.bytes(), shown_name(after.name),
          offsets_[order[i]]);
    }
  }
  finish_tensors();
}

std::optional<std::span<const std::byte>> MappedSource::stored(const TensorInfo& tensor) const {
  return file_.bytes().subspan(offsets_[index_of(tensor)], tensor.bytes());
}

void MappedSource::read_values(const TensorInfo& tensor, std::span<float> values) const {
  constexpr std::size_t kPiece = std::size_t{1} << 22;  // numbers; whole blocks of every type
  const TensorBlock block = tensor_block(tensor.type);
  std::span<const std::byte> bytes = *stored(tensor);
  while (!values.empty()) {  // a model and its file would else fill the memory together
    const std::size_t count = std::min(kPiece, values.size());
    const std::size_t size = count == values.size() ? bytes.size() : count / block.elements * block.bytes;
    decode_floats(tensor.type, bytes.first(size), values.first(count));
    file_.let_go(bytes.first(size));
    bytes = bytes.subspan(size), values = values.subspan(count);
  }
}

}  // namespace quipu
