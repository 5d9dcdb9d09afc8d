#pragma once
#include <cstdint>

#include "tensor/packed_matrix.h"

/// Row kernels of matrices in any number format, on one thread. A row's result does not depend on the other rows.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// y[r] = <w_r, x> + bias[r] for rows [begin, end) of w; bias may be null.
void dot_rows(Real* y, Matrix w, Index begin, Index end, const Real* x, const Real* bias);

/// Rows [begin, end) of w as numbers: row r at out + (r - begin) stride.
void expand_rows(Real* out, Index stride, const PackedMatrix& w, Index begin, Index end);

#ifndef QUIPU_DOUBLE
/// A vector as products with a packed matrix take it. Beside bf16 it stays as it is, even and odd elements apart.
/// Beside q8 and q4 each block of 32 is scaled so that its largest is 32767, and rounded to integers: an error of at
/// most 2^-16 of the block's largest, a hundredth of what q8 itself costs.
struct PackedInput {
  float* even;      ///< [(cols + 1) / 2]
  float* odd;       ///< [cols / 2]
  std::int16_t* q;  ///< [padded columns]
  float* scale;     ///< [blocks]; q4: over 16 and 256 for the second and third block of four
  float* sum;       ///< [blocks]: of the rounded elements
};

/// Bytes of room behind a PackedInput beside `w`, and the same filled from x [cols].
Index packed_input_bytes(const PackedMatrix& w);
PackedInput make_packed_input(const PackedMatrix& w, const float* x, std::byte* room);

/// y[r] = <w_r, x> + bias[r] for rows [begin, end) of w, read as they are stored; bias may be null.
void packed_dot_rows(float* y, const PackedMatrix& w, Index begin, Index end, const PackedInput& x, const float* bias);
#endif

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
