#pragma once
#include "base/real.h"

/// RWKV-7's keys and output, one head of one token at a time: rows of n channels. Kernels as in tensor/kernels.h.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// Keys of one head: what they are made from, and the head's weights.
struct Rwkv7KeyRow {
  const Real *k, *rate;   ///< the key, and how much of what it finds is replaced (alpha, 0 to 1)
  const Real *k_k, *k_a;  ///< weights
};
/// erase = k k_k, of length 1;   write = erase alpha;   key = k (1 + (alpha - 1) k_a).
void rwkv7_keys(Real* erase, Real* write, Real* key, const Rwkv7KeyRow& row, Index n);
/// dk, drate: written;  dk_k, dk_a: added to.
void rwkv7_keys_backward(Real* dk, Real* drate, Real* dk_k, Real* dk_a, const Real* derase, const Real* dwrite,
                         const Real* dkey, const Rwkv7KeyRow& row, Index n);

/// Output of one head: y from the memory, and the token's own key and value, weighed by s = sum r key r_k.
struct Rwkv7OutputRow {
  const Real *y, *r, *key, *v, *gate;
  const Real* r_k;  ///< weights
};
/// o = (y + s v) gate.
void rwkv7_output(Real* o, const Rwkv7OutputRow& row, Index n);
/// Gradients of one head's output; r_k's is added to, the others are written. No output may be an input.
struct Rwkv7OutputGradient {
  Real *y, *r, *key, *v, *gate, *r_k;
};
void rwkv7_output_backward(const Rwkv7OutputGradient& d, const Real* dout, const Rwkv7OutputRow& row, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
