#pragma once
#include <cstdint>
#include <string>

#include "tensor/view.h"

/// Matrix products by oneDNN, where it was found when this was built: the only door to it. Threads as OpenMP's.
namespace quipu::inline QUIPU_REAL_NS::onednn {

/// Whether it was there when this was built, for this precision.
bool is_built_in();
/// Whether it is built in and this CPU multiplies numbers of 16 bits (bf16) in hardware.
bool has_bf16();
/// Such as "oneDNN 2.6.3 (with bf16 products)", or "" where it is not built in.
std::string version();

/// A matrix of bf16 numbers: the upper halves of floats.
struct Bf16Matrix {
  const std::uint16_t* data = nullptr;
  Index rows = 0, cols = 0;  ///< contiguous
};

/// c = op(a) op(b) + (add ? c : 0), where op transposes if asked to.  op(a): [m,k], op(b): [k,n], c: [m,n].
/// Throws InternalError where oneDNN is not built in.
void multiply(Matrix c, Matrix a, bool transpose_a, Matrix b, bool transpose_b, bool add);
/// The same of bf16 numbers, summed in float.
void multiply(Matrix c, Bf16Matrix a, bool transpose_a, Bf16Matrix b, bool transpose_b, bool add);
/// c = a b^T + bias.  a: [m,k], b: [n,k];  bias: [n] or null.
void multiply_bt(Matrix c, Bf16Matrix a, Bf16Matrix b, const Real* bias);

}  // namespace quipu::inline QUIPU_REAL_NS::onednn
