#include "store/gguf_metadata.h"

#include <algorithm>
#include <limits>

namespace quipu {

namespace {

using Element = MetadataArray::Element;
constexpr std::uint32_t kArrayCode = 9;
constexpr std::uint32_t kLastCode = 12;

/// Bytes of an element; 0 for texts.
std::uint64_t bytes_of(Element element) {
  switch (element) {
    case Element::kU8:
    case Element::kI8:
    case Element::kBool:
      return 1;
    case Element::kU16:
    case Element::kI16:
      return 2;
    case Element::kU32:
    case Element::kI32:
    case Element::kF32:
      return 4;
    case Element::kU64:
    case Element::kI64:
    case Element::kF64:
      return 8;
    case Element::kString:
      break;
  }
  return 0;
}

class ValueReader {
 public:
  ValueReader(ByteCursor& cursor, const std::string& where) : cursor_(cursor), where_(where) {}

  std::string_view text(const char* what) { return cursor_.text(cursor_.number<std::uint64_t>(what), what); }

  MetadataValue value(std::string_view key) {
    const auto code = cursor_.number<std::uint32_t>("a value's type");
    if (code == kArrayCode) return array(key);
    switch (element(key, code)) {
      case Element::kU8:
        return std::int64_t{number<std::uint8_t>()};
      case Element::kI8:
        return std::int64_t{number<std::int8_t>()};
      case Element::kU16:
        return std::int64_t{number<std::uint16_t>()};
      case Element::kI16:
        return std::int64_t{number<std::int16_t>()};
      case Element::kU32:
        return std::int64_t{number<std::uint32_t>()};
      case Element::kI32:
        return std::int64_t{number<std::int32_t>()};
      case Element::kI64:
        return number<std::int64_t>();
      case Element::kU64: {
        const auto value = number<std::uint64_t>();
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::to_string(value);
        return static_cast<std::int64_t>(value);
      }
      case Element::kF32:
        return static_cast<double>(number<float>());
      case Element::kF64:
        return number<double>();
      case Element::kBool:
        return number<std::uint8_t>() != 0;
      case Element::kString:
        break;
    }
    return std::string(text("a value"));
  }

 private:
  template <typename T>
  T number() {
    return cursor_.number<T>("a value");
  }

  Element element(std::string_view key, std::uint32_t code) const {
    if (code <= kLastCode && code != kArrayCode) return static_cast<Element>(code);
    throw InputError("{}: '{}' of its metadata is of type {}{}, which is not read here; get the file again", where_,
                     shown_name(key), code, code == kArrayCode ? " (lists of lists)" : "");
  }

  MetadataArray array(std::string_view key) {
    const Element kind = element(key, cursor_.number<std::uint32_t>("a list's type"));
    const auto count = cursor_.number<std::uint64_t>("a list's length");
    const std::uint64_t each = std::max<std::uint64_t>(bytes_of(kind), kind == Element::kString ? 8 : 1);
    if (count > cursor_.left() / each) {
      throw InputError(
          "{}: is cut off or damaged: '{}' of its metadata claims {} elements, and {} bytes follow; get the "
          "file again",
          where_, shown_name(key), count, cursor_.left());
    }
    if (kind != Element::kString) return {kind, count, cursor_.take(count * each, "a list")};
    ByteCursor elements = cursor_;
    for (std::uint64_t i = 0; i < count; ++i) text("a list's text");
    return {kind, count, elements.take(cursor_.position() - elements.position(), "a list")};
  }

  ByteCursor& cursor_;
  const std::string& where_;
};

}  // namespace

void read_gguf_values(ByteCursor& cursor, std::uint64_t count, const std::string& where, SourceMetadata& metadata) {
  if (count > SourceMetadata::kMostValues) {
    throw InputError("{}: claims {} key-values, and {} are the most; get the file again", where, count,
                     SourceMetadata::kMostValues);
  }
  ValueReader reader(cursor, where);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key(reader.text("a key"));
    if (metadata.find(key) != nullptr) {
      throw InputError("{}: has '{}' twice in its metadata; get the file again", where, shown_name(key));
    }
    metadata.add(key, reader.value(key));
  }
}

}  // namespace quipu
