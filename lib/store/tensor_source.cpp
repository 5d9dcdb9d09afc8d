#include "store/tensor_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "store/byte_cursor.h"

namespace quipu {

namespace {

constexpr std::size_t kMostAxes = 8;
/// Tensors may share storage or be compressed, but together they must stay in proportion to the file.
constexpr std::uint64_t kMostExpansion = 16;
constexpr std::uint64_t kFreeExpansion = std::uint64_t{16} << 20;

}  // namespace

std::uint64_t TensorInfo::elements() const {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::uint64_t>(size);
  return product;
}

std::uint64_t TensorInfo::bytes() const {
  const TensorBlock block = tensor_block(type);
  return elements() / block.elements * block.bytes;
}

std::string type_and_shape(const TensorInfo& tensor) {
  return fmt::format("{} [{}]", tensor_type_name(tensor.type), fmt::join(tensor.shape, ", "));
}

TensorInfo& TensorSource::add_tensor(std::string name, TensorType type, std::vector<std::int64_t> shape) {
  if (shape.size() > kMostAxes) {
    throw InputError("{}: tensor '{}' has {} axes, and {} are the most; get another copy of the model", name_,
                     shown_name(name), shape.size(), kMostAxes);
  }
  const TensorBlock block = tensor_block(type);
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / block.bytes;
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) {
    // A size of zero must not hide the others: they are multiplied as if it were one.
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
    if (size < 0 || factor > most / elements) {
      throw InputError("{}: tensor '{}' claims the shape [{}], and the file has {} bytes; get the file again", name_,
                       shown_name(name), fmt::join(shape, ", "), file_bytes_);
    }
    elements *= factor;
  }
  if (block.elements > 1 && (shape.empty() || shape.back() % block.elements != 0)) {
    throw InputError("{}: tensor '{}' of type {} has rows of {} numbers, no multiple of {}; get the file again", name_,
                     shown_name(name), tensor_type_name(type), shape.empty() ? 1 : shape.back(), block.elements);
  }
  return tensors_.emplace_back(TensorInfo{std::move(name), std::move(shape), type});
}

void TensorSource::finish_tensors() {
  const std::uint64_t most = std::max(kFreeExpansion, file_bytes_ * kMostExpansion);
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : tensors_) {
    const std::uint64_t bytes = tensor.bytes();
    if (bytes > most - total) {
      throw InputError(
          "{}: its tensors up to '{}' would fill {} bytes or more, and the file has {}: that is out of "
          "proportion; refused",
          name_, shown_name(tensor.name), fmt::group_digits(std::max(most, bytes)), file_bytes_);
    }
    total += bytes;
  }
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  const auto name_at = [this](std::uint32_t index) -> const std::string& { return tensors_[index].name; };
  std::ranges::sort(by_name_, {}, name_at);
  if (const auto twice = std::ranges::adjacent_find(by_name_, {}, name_at); twice != by_name_.end()) {
    throw InputError("{}: holds two tensors named '{}'; get another copy of the model", name_,
                     shown_name(name_at(*twice)));
  }
}

const TensorInfo* TensorSource::find(std::string_view name) const {
  const auto name_at = [this](std::uint32_t index) { return std::string_view(tensors_[index].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found == by_name_.end() || name_at(*found) != name ? nullptr : &tensors_[*found];
}

const TensorInfo& TensorSource::tensor(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  throw InputError("{}: has no tensor '{}' among its {}; `convert show --verbose` lists them", name_, shown_name(name),
                   tensors_.size());
}

std::size_t TensorSource::index_of(const TensorInfo& tensor) const {
  const auto name_at = [this](std::uint32_t index) { return std::string_view(tensors_[index].name); };
  const auto found = std::ranges::lower_bound(by_name_, std::string_view(tensor.name), {}, name_at);
  if (found == by_name_.end() || name_at(*found) != tensor.name) {
    throw InternalError("{}: asked for '{}' of another file", name_, shown_name(tensor.name));
  }
  return *found;
}

void TensorSource::read(const TensorInfo& tensor, std::span<float> values) const {
  if (values.size() != tensor.elements()) {
    throw ShapeError("{}: tensor '{}' has {} numbers, {} were asked for", name_, shown_name(tensor.name),
                     tensor.elements(), values.size());
  }
  if (!values.empty()) read_values(tensor, values);
}

std::vector<float> TensorSource::read(std::string_view name) const {
  const TensorInfo& wanted = tensor(name);
  std::vector<float> values(wanted.elements());
  read(wanted, values);
  return values;
}

}  // namespace quipu
