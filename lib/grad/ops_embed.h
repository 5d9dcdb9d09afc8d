#pragma once
#include <cstdint>
#include <span>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y[i] = table[tokens[i]]: table [vocab,D] -> y [leading..,D], where leading has as many elements as tokens. The
/// gradient of a row is summed in the order of the tokens, in double for frequent ones.
/// Throws InputError for a token outside the vocabulary.
Var embedding(Tape& tape, std::span<const std::int32_t> tokens, const Var& table, const Shape& leading);

/// y = x + table[position] for x [..,D] and one position a row: learned positions, table [context,D].
/// Throws InputError for a position outside the table.
Var add_positions(Tape& tape, const Var& x, const Var& table, std::span<const std::int64_t> positions);

/// One row of a table, for one step: throws like the above.
void embed_into(Real* y, Index token, const Tensor& table);
void add_position_into(Real* y, std::int64_t position, const Tensor& table);

}  // namespace quipu::inline QUIPU_REAL_NS
