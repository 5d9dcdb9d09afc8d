#include <algorithm>

#include "store/byte_cursor.h"
#include "store/gguf_metadata.h"
#include "store/mapped_source.h"
#include "store/tensor_formats.h"

namespace quipu {

// llama.cpp's files: "GGUF", a 32-bit version, 64-bit numbers of tensors and of key-values; the key-values; for every
// tensor its name, 32-bit axes, 64-bit sizes (the innermost axis first), a 32-bit type, and the 64-bit offset of its
// data from the start of all data; that start is the next multiple of the alignment.

namespace {

constexpr std::uint64_t kSmallestTensor = 8 + 4 + 4 + 8;  // name of no bytes, no axes
constexpr std::uint32_t kMostAxes = 4;
constexpr std::uint64_t kDefaultAlignment = 32;

struct TypeCode {
  std::uint32_t code;
  TensorType type;
};

constexpr TypeCode kTypes[] = {
    {0, TensorType::kF32},   {1, TensorType::kF16},  {2, TensorType::kQ4_0}, {3, TensorType::kQ4_1},
    {6, TensorType::kQ5_0},  {7, TensorType::kQ5_1}, {8, TensorType::kQ8_0}, {24, TensorType::kI8},
    {25, TensorType::kI16},  {26, TensorType::kI32}, {27, TensorType::kI64}, {28, TensorType::kF64},
    {30, TensorType::kBF16},
};

class GgufSource final : public MappedSource {
 public:
  explicit GgufSource(MappedFile mapped) : MappedSource(std::move(mapped), "GGUF") {
    ByteCursor cursor(file());
    cursor.take(4, "the header");
    const auto version = cursor.number<std::uint32_t>("the header");
    if (version != 2 && version != 3) {
      throw InputError("{}: is a GGUF file of version {}, and 2 and 3 are read; convert the model anew", name(),
                       version);
    }
    const auto tensors = cursor.number<std::uint64_t>("the header");
    const auto values = cursor.number<std::uint64_t>("the header");
    if (tensors > cursor.left() / kSmallestTensor) {
      throw InputError("{}: claims {} tensors, and the file has {} bytes; get the file again", name(), tensors,
                       file().size());
    }
    read_gguf_values(cursor, values, name(), metadata_);
    // The data's start is known behind the last tensor's description: they are read twice, and none is kept.
    ByteCursor behind = cursor;
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(behind);
    const std::uint64_t alignment = find_alignment();
    const std::uint64_t start = (behind.position() + alignment - 1) / alignment * alignment;
    for (std::uint64_t i = 0; i < tensors; ++i) place(read_tensor(cursor), start, alignment);
    finish_stored();
  }

 private:
  struct Described {
    std::string_view name;
    std::vector<std::int64_t> shape;
    TensorType type;
    std::uint64_t offset;
  };

  Described read_tensor(ByteCursor& cursor) {
    const auto name_bytes = cursor.number<std::uint64_t>("a tensor's name");
    Described tensor;
    tensor.name = cursor.text(name_bytes, "a tensor's name");
    const auto axes = cursor.number<std::uint32_t>("a tensor's shape");
    if (axes > kMostAxes) {
      throw InputError("{}: tensor '{}' has {} axes, and {} are the most; get the file again", name(),
                       shown_name(tensor.name), axes, kMostAxes);
    }
    tensor.shape.resize(axes);
    for (std::uint32_t axis = axes; axis-- > 0;) tensor.shape[axis] = cursor.number<std::int64_t>("a tensor's shape");
    tensor.type = type_of(tensor.name, cursor.number<std::uint32_t>("a tensor's type"));
    tensor.offset = cursor.number<std::uint64_t>("a tensor's offset");
    return tensor;
  }

  TensorType type_of(std::string_view tensor, std::uint32_t code) const {
    const auto* found = std::ranges::find(kTypes, code, &TypeCode::code);
    if (found != std::end(kTypes)) return found->type;
    throw InputError(
        "{}: tensor '{}' is of ggml's type {}, which is not read here; quantise the model as Q8_0, Q5_1 or "
        "Q4_0, or keep it F16",
        name(), shown_name(tensor), code);
  }

  std::uint64_t find_alignment() const {
    const MetadataValue* value = metadata_.find("general.alignment");
    if (value == nullptr) return kDefaultAlignment;
    const auto* number = std::get_if<std::int64_t>(value);
    if (number == nullptr || *number < 8 || *number % 8 != 0 || *number > (1 << 20)) {
      throw InputError("{}: general.alignment is no multiple of 8 from 8 to {}; get the file again", name(), 1 << 20);
    }
    return static_cast<std::uint64_t>(*number);
  }

  void place(Described tensor, std::uint64_t start, std::uint64_t alignment) {
    if (tensor.offset % alignment != 0 || tensor.offset > file().size() || start > file().size() - tensor.offset) {
      throw InputError(
          "{}: is cut off or damaged: tensor '{}' begins at byte {} + {} of {} (aligned to {}); get the "
          "file again",
          name(), shown_name(tensor.name), start, tensor.offset, file().size(), alignment);
    }
    add_stored(std::string(tensor.name), tensor.type, std::move(tensor.shape), start + tensor.offset);
  }
};

}  // namespace

std::unique_ptr<TensorSource> open_gguf(MappedFile file) { return std::make_unique<GgufSource>(std::move(file)); }

}  // namespace quipu
