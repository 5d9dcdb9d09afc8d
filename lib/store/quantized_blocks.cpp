#include "store/quantized_blocks.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace quipu {

namespace {

constexpr std::size_t kBlock = 32;
constexpr std::size_t kHalf = kBlock / 2;

float half_at(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return float_of_half(bits);
}

/// Four or five bits a number: [d] [m] [fifth bits] [16 bytes].
template <bool has_minimum, bool has_fifth>
void decode_small(const std::byte* from, float* x) {
  const float d = half_at(from);
  const float m = has_minimum ? half_at(from + 2) : 0.0F;
  from += has_minimum ? 4 : 2;
  std::uint32_t fifth = 0;
  if constexpr (has_fifth) {
    std::memcpy(&fifth, from, sizeof fifth);
    from += sizeof fifth;
  }
  constexpr int kCentre = has_minimum ? 0 : has_fifth ? 16 : 8;
  const auto number = [&](std::uint32_t low, std::size_t j) {
    const auto q = static_cast<int>(low | ((fifth >> j) & 1U) << 4) - kCentre;
    if constexpr (has_minimum) return static_cast<float>(q) * d + m;
    return static_cast<float>(q) * d;
  };
  for (std::size_t j = 0; j < kHalf; ++j) {
    const auto byte = std::to_integer<std::uint32_t>(from[j]);
    x[j] = number(byte & 15U, j);
    x[j + kHalf] = number(byte >> 4, j + kHalf);
  }
}

void decode_q8_0(const std::byte* from, float* x) {
  const float d = half_at(from);
  for (std::size_t j = 0; j < kBlock; ++j) x[j] = static_cast<float>(static_cast<std::int8_t>(from[2 + j])) * d;
}

template <typename Decode>
void decode_all(std::span<const std::byte> stored, std::size_t block_bytes, std::span<float> values, Decode decode) {
  for (std::size_t block = 0; block < values.size() / kBlock; ++block) {
    decode(stored.data() + block * block_bytes, values.data() + block * kBlock);
  }
}

}  // namespace

void decode_blocks(TensorType type, std::span<const std::byte> stored, std::span<float> values) {
  const std::size_t bytes = tensor_block(type).bytes;
  switch (type) {
    case TensorType::kQ4_0:
      return decode_all(stored, bytes, values, decode_small<false, false>);
    case TensorType::kQ4_1:
      return decode_all(stored, bytes, values, decode_small<true, false>);
    case TensorType::kQ5_0:
      return decode_all(stored, bytes, values, decode_small<false, true>);
    case TensorType::kQ5_1:
      return decode_all(stored, bytes, values, decode_small<true, true>);
    case TensorType::kQ8_0:
      return decode_all(stored, bytes, values, decode_q8_0);
    default:
      throw InternalError("{} has no blocks", tensor_type_name(type));
  }
}

}  // namespace quipu
