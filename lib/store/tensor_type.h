#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quipu {

/// How a foreign file stores the numbers of a tensor, always little-endian. The last five are ggml's blocks of 32
/// numbers along the last axis: a float16 scale (and minimum), then small integers.
enum class TensorType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
};

/// "f32", "bf16", "bool", "q5_1", ...
std::string_view tensor_type_name(TensorType type);

/// How many numbers are stored together (1, or 32 for the quantised types), and in how many bytes.
struct TensorBlock {
  std::uint32_t elements;
  std::uint32_t bytes;
};
TensorBlock tensor_block(TensorType type);

inline bool is_quantized(TensorType type) { return type >= TensorType::kQ4_0; }

/// Stored numbers as floats: the nearest float, and exactly what ggml computes from its blocks. `stored` need not be
/// aligned. Throws InternalError unless it holds exactly `values`.size() numbers.
void decode_floats(TensorType type, std::span<const std::byte> stored, std::span<float> values);

/// One IEEE half-precision number, exactly.
float float_of_half(std::uint16_t bits);

}  // namespace quipu
