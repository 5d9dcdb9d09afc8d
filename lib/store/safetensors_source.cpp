#include <algorithm>
#include <optional>

#include "store/json_check.h"
#include "store/mapped_source.h"
#include "store/tensor_formats.h"

namespace quipu {

// Layout: a 64-bit length, that many bytes of JSON, then the data. The JSON is an object of
//   NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
// with offsets from the start of the data, and optionally "__metadata__": {TEXT: TEXT}.

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as in the reference reader

struct TypeCode {
  std::string_view code;
  TensorType type;
};

constexpr TypeCode kTypes[] = {
    {"F64", TensorType::kF64},   {"F32", TensorType::kF32}, {"F16", TensorType::kF16}, {"BF16", TensorType::kBF16},
    {"I64", TensorType::kI64},   {"I32", TensorType::kI32}, {"I16", TensorType::kI16}, {"I8", TensorType::kI8},
    {"U64", TensorType::kU64},   {"U32", TensorType::kU32}, {"U16", TensorType::kU16}, {"U8", TensorType::kU8},
    {"BOOL", TensorType::kBool},
};

/// One tensor as the header describes it; offsets are from the start of the data.
struct Described {
  std::string name;
  std::optional<TensorType> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

class SafetensorsSource final : public MappedSource {
 public:
  explicit SafetensorsSource(MappedFile file);

  void add_described(Described tensor);
  void add_metadata(std::string key, std::string value) { metadata_.add(std::move(key), std::move(value)); }

 private:
  std::uint64_t data_start_ = 0;
  std::uint64_t data_bytes_ = 0;  // of all tensors
};

/// Reads the header: depth 1 has the tensors' names, depth 2 their fields, depth 3 shapes and offsets.
class HeaderEvents final : public JsonEvents {
 public:
  HeaderEvents(SafetensorsSource& source, const std::string& where)
      : JsonEvents(where, "the header", 3), source_(source) {}

  bool key(string_t& key) override {
    if (depth() == 1) {
      in_metadata_ = key == "__metadata__";
      tensor_ = {};
      tensor_.name = std::move(key);
    } else {
      field_ = std::move(key);
    }
    return true;
  }

  bool string(string_t& text) override {
    if (depth() != 2) unexpected("a text");
    if (in_metadata_) {
      source_.add_metadata(field_, std::move(text));
    } else {
      if (field_ != "dtype" || tensor_.type) refuse_field();
      tensor_.type = type_of(text);
    }
    return true;
  }

  bool start_array(std::size_t size) override {
    if (depth() != 2 || in_metadata_) unexpected("a list");
    if (field_ == "shape" && !tensor_.shape) {
      tensor_.shape.emplace();
    } else if (field_ == "data_offsets" && !tensor_.offsets) {
      tensor_.offsets.emplace();
    } else {
      refuse_field();
    }
    return JsonEvents::start_array(size);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth() != 3) unexpected("a number");
    if (field_ == "data_offsets") {
      if (tensor_.offsets->size() == 2) refuse_field();
      tensor_.offsets->push_back(value);
    } else {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        unexpected("a number above 2^63");
      tensor_.shape->push_back(static_cast<std::int64_t>(value));
    }
    return true;
  }

  bool start_object(std::size_t size) override {
    if (depth() >= 2) unexpected("an object");
    return JsonEvents::start_object(size);
  }

  bool end_object() override {
    JsonEvents::end_object();
    if (depth() == 1 && !in_metadata_) source_.add_described(std::move(tensor_));
    return true;
  }

 private:
  [[noreturn]] void refuse_field() const {
    throw InputError("{}: tensor '{}' has '{}' twice, or of the wrong kind; get the file again", where(),
                     shown_name(tensor_.name), shown_name(field_));
  }

  TensorType type_of(const std::string& code) const {
    const auto* found = std::ranges::find(kTypes, std::string_view(code), &TypeCode::code);
    if (found != std::end(kTypes)) return found->type;
    throw InputError("{}: tensor '{}' is of type {}, which is not read here; save it as F32, F16 or BF16", where(),
                     shown_name(tensor_.name), shown_name(code));
  }

  SafetensorsSource& source_;
  bool in_metadata_ = false;
  Described tensor_;
  std::string field_;
};

SafetensorsSource::SafetensorsSource(MappedFile mapped) : MappedSource(std::move(mapped), "safetensors") {
  ByteCursor cursor(file());
  const auto length = cursor.number<std::uint64_t>("the header's length");
  if (length > kLongestHeader) {
    throw InputError("{}: its header claims {} bytes, and {} are the most; get the file again", name(), length,
                     kLongestHeader);
  }
  const std::string_view header = cursor.text(length, "the header");
  data_start_ = cursor.position();
  HeaderEvents events(*this, name());
  events.parse(header);
  if (data_bytes_ != cursor.left()) {
    throw InputError("{}: its tensors have {} bytes, and {} follow the header; get the file again", name(), data_bytes_,
                     cursor.left());
  }
  finish_stored();
}

void SafetensorsSource::add_described(Described tensor) {
  if (!tensor.type || !tensor.shape || !tensor.offsets || tensor.offsets->size() != 2) {
    throw InputError("{}: tensor '{}' lacks its dtype, its shape or its two data_offsets; get the file again", name(),
                     shown_name(tensor.name));
  }
  const std::uint64_t begin = tensor.offsets->front();
  const std::uint64_t end = tensor.offsets->back();
  const std::uint64_t room = file().size() - data_start_;
  if (begin > end || end > room) {
    throw InputError(
        "{}: is cut off or damaged: tensor '{}' has the data_offsets {} and {} of {} bytes; get the file "
        "again",
        name(), shown_name(tensor.name), begin, end, room);
  }
  add_stored(std::move(tensor.name), *tensor.type, std::move(*tensor.shape), data_start_ + begin);
  const TensorInfo& added = tensors().back();
  if (added.bytes() != end - begin) {
    throw InputError("{}: tensor '{}' is {}, {} bytes, and has {} in the file; get the file again", name(),
                     shown_name(added.name), type_and_shape(added), added.bytes(), end - begin);
  }
  if (added.bytes() > room - data_bytes_) {
    throw InputError(
        "{}: is damaged: its tensors up to '{}' overlap: they have more than the {} bytes of data; get the "
        "file again",
        name(), shown_name(added.name), room);
  }
  data_bytes_ += added.bytes();
}

}  // namespace

std::unique_ptr<TensorSource> open_safetensors(MappedFile file) {
  return std::make_unique<SafetensorsSource>(std::move(file));
}

}  // namespace quipu
