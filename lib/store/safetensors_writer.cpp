#include "store/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace quipu {
namespace {

std::uint64_t elements(const SafetensorsWriter::Tensor& tensor) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : tensor.shape) count *= static_cast<std::uint64_t>(extent);
  return count;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<Tensor> tensors,
                                     const std::vector<std::pair<std::string, std::string>>& metadata)
    : file_(path), tensors_(std::move(tensors)) {
  nlohmann::ordered_json header;
  if (!metadata.empty())
    for (const auto& [key, text] : metadata) header["__metadata__"][key] = text;
  std::uint64_t begin = 0;
  for (const Tensor& tensor : tensors_) {
    const std::uint64_t end = begin + elements(tensor) * sizeof(float);
    if (header.contains(tensor.name)) throw InternalError("safetensors: two tensors are called {}", tensor.name);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers stand aligned
  std::string length(sizeof(std::uint64_t), '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  file_.write(length);
  file_.write(text);
}

void SafetensorsWriter::write(std::span<const float> numbers) {
  if (written_ == tensors_.size()) throw InternalError("safetensors: more than its {} tensors", written_);
  const Tensor& tensor = tensors_[written_++];
  if (numbers.size() != elements(tensor))
    throw ShapeError("{}: {} numbers for {}, which has {}", file_.name(), numbers.size(), tensor.name,
                     elements(tensor));
  file_.write(std::as_bytes(numbers));
}

void SafetensorsWriter::commit() {
  if (written_ != tensors_.size())
    throw InternalError("safetensors: {} of {} tensors are written", written_, tensors_.size());
  file_.commit();
}

}  // namespace quipu
