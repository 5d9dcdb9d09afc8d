#include <array>
#include <optional>

#include "store/byte_cursor.h"
#include "store/mapped_source.h"
#include "store/tensor_formats.h"

namespace quipu {

// rwkv.cpp's files. A header of six 32-bit numbers: magic, version, n_vocab, n_embed, n_layer, data type; then tensors
// until the end: 32-bit axes, length of the name, type; 32-bit sizes, the innermost axis first; the name; the data.

namespace {

constexpr std::uint32_t kOldVersion = 100;  // without the quantised types of today
constexpr std::uint32_t kVersion = 101;
constexpr std::uint32_t kMostAxes = 3;
constexpr std::size_t kMostTensors = 65536;

constexpr std::array<std::optional<TensorType>, 10> kTypes = {
    TensorType::kF32, TensorType::kF16, TensorType::kQ4_0, TensorType::kQ4_1, std::nullopt,
    std::nullopt,     std::nullopt,     TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0};

class GgmfSource final : public MappedSource {
 public:
  explicit GgmfSource(MappedFile mapped) : MappedSource(std::move(mapped), "ggmf") {
    ByteCursor cursor(file());
    read_header(cursor);
    while (cursor.left() > 0) read_tensor(cursor);
    finish_stored();
  }

 private:
  void read_header(ByteCursor& cursor) {
    cursor.take(4, "the header");
    version_ = cursor.number<std::uint32_t>("the header");
    if (version_ != kOldVersion && version_ != kVersion) {
      throw InputError("{}: is a ggmf file of version {}, and {} and {} are read; convert it with today's rwkv.cpp",
                       name(), version_, kOldVersion, kVersion);
    }
    metadata_.add("version", std::int64_t{version_});
    for (const char* key : {"n_vocab", "n_embed", "n_layer"}) {
      metadata_.add(key, std::int64_t{cursor.number<std::uint32_t>("the header")});
    }
    metadata_.add("data_type", std::string(tensor_type_name(type_of(cursor.number<std::uint32_t>("the header")))));
  }

  void read_tensor(ByteCursor& cursor) {
    const auto axes = cursor.number<std::uint32_t>("a tensor's header");
    const auto name_bytes = cursor.number<std::uint32_t>("a tensor's header");
    const auto code = cursor.number<std::uint32_t>("a tensor's header");
    if (axes < 1 || axes > kMostAxes || tensors().size() == kMostTensors) {
      throw InputError("{}: is damaged: tensor {} at byte {} has {} axes, and 1 to {} belong there; get the file again",
                       name(), tensors().size(), cursor.position() - 12, axes, kMostAxes);
    }
    const TensorType type = type_of(code);
    std::vector<std::int64_t> shape(axes);
    for (std::uint32_t axis = axes; axis-- > 0;) shape[axis] = cursor.number<std::uint32_t>("a tensor's sizes");
    const std::string_view key = cursor.text(name_bytes, "a tensor's name");
    add_stored(std::string(key), type, std::move(shape), cursor.position());
    const TensorInfo& added = tensors().back();
    if (added.elements() == 0) {
      throw InputError("{}: is damaged: tensor '{}' has no numbers ({}); get the file again", name(),
                       shown_name(added.name), type_and_shape(added));
    }
    cursor.take(added.bytes(), "a tensor");
  }

  TensorType type_of(std::uint32_t code) const {
    if (code >= kTypes.size() || !kTypes[code]) {
      throw InputError(
          "{}: has numbers of type {}, which is none of FP32 (0), FP16 (1), Q4_0 (2), Q4_1 (3), Q5_0 (7), "
          "Q5_1 (8), Q8_0 (9); quantise the model anew",
          name(), code);
    }
    if (version_ == kOldVersion && is_quantized(*kTypes[code])) {
      throw InputError(
          "{}: is quantised ({}) in a file of version {}, whose blocks are no longer read; quantise the "
          "model anew (version {})",
          name(), tensor_type_name(*kTypes[code]), kOldVersion, kVersion);
    }
    return *kTypes[code];
  }

  std::uint32_t version_ = 0;
};

}  // namespace

std::unique_ptr<TensorSource> open_ggmf(MappedFile file) { return std::make_unique<GgmfSource>(std::move(file)); }

}  // namespace quipu
