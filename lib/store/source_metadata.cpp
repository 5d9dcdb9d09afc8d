#include "store/source_metadata.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace quipu {

namespace {

template <typename T>
T take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

double take_number(MetadataArray::Element element, std::span<const std::byte>& bytes) {
  using Element = MetadataArray::Element;
  switch (element) {
    case Element::kU8:
      return take<std::uint8_t>(bytes);
    case Element::kI8:
      return take<std::int8_t>(bytes);
    case Element::kU16:
      return take<std::uint16_t>(bytes);
    case Element::kI16:
      return take<std::int16_t>(bytes);
    case Element::kU32:
      return take<std::uint32_t>(bytes);
    case Element::kI32:
      return take<std::int32_t>(bytes);
    case Element::kF32:
      return static_cast<double>(take<float>(bytes));
    case Element::kBool:
      return take<std::uint8_t>(bytes) != 0 ? 1.0 : 0.0;
    case Element::kU64:
      return static_cast<double>(take<std::uint64_t>(bytes));
    case Element::kI64:
      return static_cast<double>(take<std::int64_t>(bytes));
    case Element::kF64:
      return take<double>(bytes);
    case Element::kString:
      break;
  }
  throw InputError("a list of the metadata holds texts where numbers belong; get another copy of the model");
}

}  // namespace

std::vector<std::string> MetadataArray::strings() const {
  if (element_ != Element::kString) {
    throw InputError("a list of the metadata holds numbers where texts belong; get another copy of the model");
  }
  std::vector<std::string> all;
  all.reserve(size_);
  std::span<const std::byte> rest = bytes_;
  for (std::uint64_t i = 0; i < size_; ++i) {
    const auto length = take<std::uint64_t>(rest);
    all.emplace_back(reinterpret_cast<const char*>(rest.data()), length);
    rest = rest.subspan(length);
  }
  return all;
}

std::vector<double> MetadataArray::numbers() const {
  std::vector<double> all;
  if (element_ != Element::kString) all.reserve(size_);
  std::span<const std::byte> rest = bytes_;
  for (std::uint64_t i = 0; i < size_; ++i) all.push_back(take_number(element_, rest));
  return all;
}

const MetadataValue* SourceMetadata::find(std::string_view key) const {
  const auto found = std::ranges::find(values, key, [](const auto& pair) { return std::string_view(pair.first); });
  return found == values.end() ? nullptr : &found->second;
}

const std::string* SourceMetadata::find_text(std::string_view name) const {
  const auto found = std::ranges::find(texts, name, [](const auto& pair) { return std::string_view(pair.first); });
  return found == texts.end() ? nullptr : &found->second;
}

void SourceMetadata::add(std::string key, MetadataValue value) {
  if (values.size() < kMostValues)
    values.emplace_back(std::move(key), std::move(value));
  else
    ++left_out;
}

}  // namespace quipu
