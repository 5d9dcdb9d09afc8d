#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/real.h"

namespace quipu {

/// How the numbers of a matrix are stored. bf16: the upper half of a float32, rounded to nearest, 2 bytes. q8 and q4
/// keep blocks of 32 numbers of a row, whose float16 scale d they share: q8: x = d q with q in [-127, 127], 1.0625
/// bytes a number; q4: x = d q + m with q in [0, 15] and a float16 m, 0.625 bytes. A q4 row is padded with zeros to a
/// multiple of 128 numbers, a q8 row to one of 32.
///
/// A stored row: all its small integers, then its scales, then (q4) its m. q4 keeps four blocks together, in 32 16-bit
/// words: word j has the number j of block k in its bits 4k .. 4k + 3. All is little-endian.
enum class NumberFormat : std::uint8_t { f32, bf16, q8, q4 };

inline constexpr NumberFormat kNumberFormats[] = {NumberFormat::f32, NumberFormat::bf16, NumberFormat::q8,
                                                  NumberFormat::q4};

std::string_view format_name(NumberFormat format);
/// Throws UsageError with the known names.
NumberFormat parse_number_format(std::string_view name);

inline constexpr Index kFormatBlock = 32;

/// Numbers that a stored row has room for: `columns`, rounded up to whole blocks.
Index padded_columns(NumberFormat format, Index columns);
/// Blocks of a stored row; 0 where the format has none.
Index row_blocks(NumberFormat format, Index columns);
/// Bytes of a stored row.
Index row_bytes(NumberFormat format, Index columns);

/// Stores a row. Numbers come back within 2^-9 |x| in bf16 and within d/2 in q8, where d <= max |x| / 126.8 of their
/// block + 6e-8. q4 takes, of several d and m, those of least squared error; the root mean
/// square error of a block is at most (max - min) / 29.
/// `stored` has row_bytes. Throws NumericError where a number is not finite or too large for its block.
void encode_row(NumberFormat format, std::span<const float> values, std::span<std::byte> stored);
/// What a stored row says; exact in float32 but for the rounding of d q + m.
void decode_row(NumberFormat format, std::span<const std::byte> stored, std::span<float> values);

/// IEEE half precision: the nearest, ties to even; infinity where it is too large.
std::uint16_t half_of_float(float value);
float half_to_float(std::uint16_t bits);

}  // namespace quipu
