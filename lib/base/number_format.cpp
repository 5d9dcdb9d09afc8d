#include "base/number_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace quipu {

static_assert(std::endian::native == std::endian::little, "stored rows are read in place: little-endian only");

namespace {

constexpr std::size_t kBlock = static_cast<std::size_t>(kFormatBlock);
constexpr std::size_t kGroup = 4 * kBlock;  // of q4: 128 numbers in 64 bytes

using Block = std::array<float, kBlock>;

/// Numbers [at, at + 32) of a row, zeros behind its end.
Block block_at(std::span<const float> values, std::size_t at) {
  Block block{};
  if (at < values.size())
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), std::min(kBlock, values.size() - at), block.begin());
  return block;
}

float finite_half(float value, std::uint16_t* bits) {
  *bits = half_of_float(value);
  return half_to_float(*bits);
}

void put(std::byte* to, std::uint16_t bits) { std::memcpy(to, &bits, sizeof bits); }

std::uint16_t get(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

void require_finite(std::span<const float> values) {
  for (const float x : values)
    if (!std::isfinite(x)) throw NumericError("holds {}, which no block of numbers has room for", x);
}

[[noreturn]] void throw_large(float value) {
  throw NumericError("holds {}, too large for a block whose scale is at most 65504", value);
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// One block of q8: its scale is rounded up, so that no number falls outside.
std::uint16_t encode_q8(const Block& x, std::byte* integers) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  std::uint16_t bits = half_of_float(largest / 127);
  if (half_to_float(bits) * 127 < largest) ++bits;
  const float scale = half_to_float(bits);
  if (!std::isfinite(scale)) throw_large(largest);
  for (std::size_t j = 0; j < kBlock; ++j)
    integers[j] = static_cast<std::byte>(scale > 0 ? static_cast<std::int8_t>(std::lround(x[j] / scale)) : 0);
  return bits;
}

struct Q4Block {
  std::uint16_t scale = 0, minimum = 0;
  std::array<std::uint8_t, kBlock> q{};
  float error = 0;
};

/// The nearest integers for a scale and minimum (rounded to float16), and their squared error.
Q4Block nearest_q4(const Block& x, float scale, float minimum) {
  Q4Block block;
  const float d = finite_half(std::max(scale, 0.0F), &block.scale), m = finite_half(minimum, &block.minimum);
  const float inverse = d > 0 ? 1 / d : 0;
  for (std::size_t j = 0; j < kBlock; ++j) {
    const float q = std::clamp(std::nearbyint((x[j] - m) * inverse), 0.0F, 15.0F);
    const float error = d * q + m - x[j];
    block.q[j] = static_cast<std::uint8_t>(q);
    block.error += error * error;
  }
  return block;
}

/// The scale and minimum that fit given integers best, by least squares.
Q4Block refitted_q4(const Block& x, const Q4Block& block) {
  float q_sum = 0, qq = 0, x_sum = 0, qx = 0;
  for (std::size_t j = 0; j < kBlock; ++j) {
    const auto q = static_cast<float>(block.q[j]);
    q_sum += q, qq += q * q, x_sum += x[j], qx += q * x[j];
  }
  constexpr auto n = static_cast<float>(kBlock);
  const float spread = n * qq - q_sum * q_sum;
  if (!(spread > 0)) return block;
  const float d = (n * qx - q_sum * x_sum) / spread;
  return nearest_q4(x, d, (x_sum - d * q_sum) / n);
}

Q4Block encode_q4(const Block& x) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  const float low = *least, range = *most - *least;
  if (half_to_float(half_of_float(range / 15)) > 65504 || !(std::abs(half_to_float(half_of_float(low))) <= 65504))
    throw_large(std::max(std::abs(low), std::abs(*most)));
  Q4Block best = nearest_q4(x, range / 15, low);
  for (int step = 0; step < 7; ++step) {  // narrower ranges: the outermost numbers give way to the many
    const float cut = 0.02F * static_cast<float>(step) * range;
    const Q4Block tried = refitted_q4(x, nearest_q4(x, (range - 2 * cut) / 15, low + cut));
    if (tried.error < best.error) best = tried;
  }
  return best;
}

void encode_q4_row(std::span<const float> values, std::size_t blocks, std::byte* stored) {
  std::byte* const scales = stored + blocks * kBlock / 2;
  for (std::size_t group = 0; group < blocks / 4; ++group) {
    std::array<std::uint16_t, kBlock> words{};
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t b = 4 * group + k;
      const Q4Block block = encode_q4(block_at(values, b * kBlock));
      for (std::size_t j = 0; j < kBlock; ++j)
        words[j] = static_cast<std::uint16_t>(words[j] | (static_cast<unsigned>(block.q[j]) << (4 * k)));
      put(scales + 2 * b, block.scale);
      put(scales + 2 * (blocks + b), block.minimum);
    }
    std::memcpy(stored + group * sizeof words, words.data(), sizeof words);
  }
}

void decode_q4_row(const std::byte* stored, std::size_t blocks, std::span<float> values) {
  const std::byte* const scales = stored + blocks * kBlock / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t b = i / kBlock, word = i / kGroup * kBlock + i % kBlock;
    const auto q = static_cast<float>((get(stored + 2 * word) >> (4 * (b % 4))) & 15U);
    values[i] = half_to_float(get(scales + 2 * b)) * q + half_to_float(get(scales + 2 * (blocks + b)));
  }
}

void check_sizes(NumberFormat format, std::size_t values, std::size_t bytes) {
  if (bytes != static_cast<std::size_t>(row_bytes(format, static_cast<Index>(values))))
    throw InternalError("{} bytes for a row of {} numbers in {}", bytes, values, format_name(format));
}

}  // namespace

std::string_view format_name(NumberFormat format) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "q8", "q4"};
  return kNames[static_cast<std::size_t>(format)];
}

NumberFormat parse_number_format(std::string_view name) {
  for (const NumberFormat format : kNumberFormats)
    if (format_name(format) == name) return format;
  throw UsageError("number format {}: is unknown; there are f32, bf16, q8, q4", name);
}

Index padded_columns(NumberFormat format, Index columns) {
  const Index whole = format == NumberFormat::q8 ? kFormatBlock : format == NumberFormat::q4 ? 4 * kFormatBlock : 1;
  return (columns + whole - 1) / whole * whole;
}

Index row_blocks(NumberFormat format, Index columns) {
  return format < NumberFormat::q8 ? 0 : padded_columns(format, columns) / kFormatBlock;
}

Index row_bytes(NumberFormat format, Index columns) {
  const Index padded = padded_columns(format, columns), blocks = row_blocks(format, columns);
  switch (format) {
    case NumberFormat::f32:
      return 4 * padded;
    case NumberFormat::bf16:
      return 2 * padded;
    case NumberFormat::q8:
      return padded + 2 * blocks;
    case NumberFormat::q4:
      return padded / 2 + 4 * blocks;
  }
  throw InternalError("number format {}", static_cast<int>(format));
}

void encode_row(NumberFormat format, std::span<const float> values, std::span<std::byte> stored) {
  check_sizes(format, values.size(), stored.size());
  const auto blocks = static_cast<std::size_t>(row_blocks(format, static_cast<Index>(values.size())));
  switch (format) {
    case NumberFormat::f32:
      return static_cast<void>(std::memcpy(stored.data(), values.data(), stored.size()));
    case NumberFormat::bf16:
      for (std::size_t i = 0; i < values.size(); ++i) put(stored.data() + 2 * i, bf16_of(values[i]));
      return;
    case NumberFormat::q8:
      require_finite(values);
      for (std::size_t b = 0; b < blocks; ++b)
        put(stored.data() + blocks * kBlock + 2 * b,
            encode_q8(block_at(values, b * kBlock), stored.data() + b * kBlock));
      return;
    case NumberFormat::q4:
      require_finite(values);
      return encode_q4_row(values, blocks, stored.data());
  }
}

void decode_row(NumberFormat format, std::span<const std::byte> stored, std::span<float> values) {
  check_sizes(format, values.size(), stored.size());
  const auto blocks = static_cast<std::size_t>(row_blocks(format, static_cast<Index>(values.size())));
  switch (format) {
    case NumberFormat::f32:
      return static_cast<void>(std::memcpy(values.data(), stored.data(), stored.size()));
    case NumberFormat::bf16:
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(get(stored.data() + 2 * i)) << 16);
      return;
    case NumberFormat::q8:
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = half_to_float(get(stored.data() + blocks * kBlock + 2 * (i / kBlock))) *
                    static_cast<float>(std::to_integer<std::int8_t>(stored[i]));
      return;
    case NumberFormat::q4:
      return decode_q4_row(stored.data(), blocks, values);
  }
}

std::uint16_t half_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x1p-14F)  // subnormal halves: multiples of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  const std::uint32_t m = bits & 0x7fffffffU;
  const std::uint32_t rounded = m + 0xfffU + ((m >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  if (magnitude >= 0x7c00U << 13) return std::bit_cast<float>(sign | magnitude | 0x7f800000U);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F) | sign);
}

}  // namespace quipu
