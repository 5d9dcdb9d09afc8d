#include "store/tensor_type.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "store/quantized_blocks.h"

namespace quipu {

static_assert(std::endian::native == std::endian::little, "foreign tensor files are read in place: little-endian only");

namespace {

struct TypeFacts {
  std::string_view name;
  TensorBlock block;
};

constexpr TypeFacts kTypes[] = {
    {"f64", {1, 8}},    {"f32", {1, 4}},    {"f16", {1, 2}},    {"bf16", {1, 2}},   {"i64", {1, 8}},
    {"i32", {1, 4}},    {"i16", {1, 2}},    {"i8", {1, 1}},     {"u64", {1, 8}},    {"u32", {1, 4}},
    {"u16", {1, 2}},    {"u8", {1, 1}},     {"bool", {1, 1}},   {"q4_0", {32, 18}}, {"q4_1", {32, 20}},
    {"q5_0", {32, 22}}, {"q5_1", {32, 24}}, {"q8_0", {32, 34}},
};

template <typename Stored, typename Convert>
void decode_each(std::span<const std::byte> stored, std::span<float> values, Convert convert) {
  const std::byte* from = stored.data();
  for (float& value : values) {
    Stored number;
    std::memcpy(&number, from, sizeof(Stored));
    value = convert(number);
    from += sizeof(Stored);
  }
}

template <typename Stored>
void decode_numbers(std::span<const std::byte> stored, std::span<float> values) {
  decode_each<Stored>(stored, values, [](Stored number) { return static_cast<float>(number); });
}

}  // namespace

std::string_view tensor_type_name(TensorType type) { return kTypes[static_cast<std::size_t>(type)].name; }

TensorBlock tensor_block(TensorType type) { return kTypes[static_cast<std::size_t>(type)].block; }

float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  if (magnitude >= 0x7c00U << 13) return std::bit_cast<float>(sign | magnitude | 0x7f800000U);  // infinite, NaN
  // The exponent's bias differs by 112; a product with 2^112 corrects it, for subnormal halves too.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F) | sign);
}

void decode_floats(TensorType type, std::span<const std::byte> stored, std::span<float> values) {
  const TensorBlock block = tensor_block(type);
  if (values.size() % block.elements != 0 || stored.size() != values.size() / block.elements * block.bytes) {
    throw InternalError("{} bytes of {} for {} numbers", stored.size(), tensor_type_name(type), values.size());
  }
  if (values.empty()) return;
  switch (type) {
    case TensorType::kF32:
      return static_cast<void>(std::memcpy(values.data(), stored.data(), stored.size()));
    case TensorType::kF64:
      return decode_numbers<double>(stored, values);
    case TensorType::kF16:
      return decode_each<std::uint16_t>(stored, values, float_of_half);
    case TensorType::kBF16:
      return decode_each<std::uint16_t>(stored, values, [](std::uint16_t bits) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
      });
    case TensorType::kI64:
      return decode_numbers<std::int64_t>(stored, values);
    case TensorType::kI32:
      return decode_numbers<std::int32_t>(stored, values);
    case TensorType::kI16:
      return decode_numbers<std::int16_t>(stored, values);
    case TensorType::kI8:
      return decode_numbers<std::int8_t>(stored, values);
    case TensorType::kU64:
      return decode_numbers<std::uint64_t>(stored, values);
    case TensorType::kU32:
      return decode_numbers<std::uint32_t>(stored, values);
    case TensorType::kU16:
      return decode_numbers<std::uint16_t>(stored, values);
    case TensorType::kU8:
      return decode_numbers<std::uint8_t>(stored, values);
    case TensorType::kBool:
      return decode_each<std::uint8_t>(stored, values, [](std::uint8_t byte) { return byte != 0 ? 1.0F : 0.0F; });
    default:
      return decode_blocks(type, stored, values);
  }
}

}  // namespace quipu
