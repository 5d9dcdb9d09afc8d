#pragma once
#include <cstddef>
#include <span>

#include "store/tensor_type.h"

namespace quipu {

/// ggml's blocks as floats, for blocks of 32 numbers x_0 .. x_31 with a scale d and, in the `_1` types, a minimum m:
///   q4_0: x = d (q - 8)      q5_0: x = d (q - 16)      q8_0: x = d q  (q signed)
///   q4_1: x = d q + m        q5_1: x = d q + m
/// Four-bit halves: byte j of the block has x_j in its low and x_{j+16} in its high half; the fifth bits of all 32
/// stand in one 32-bit word. `values`.size() is a multiple of 32, and `stored` has as many blocks.
void decode_blocks(TensorType type, std::span<const std::byte> stored, std::span<float> values);

}  // namespace quipu
