#pragma once
#include "grad/tape.h"

/// What RWKV-7 computes around its scan, fused by token and head. Weights have one number a channel, of any shape of
/// that count; those of all others are [B,T,H,N]. Gradients of weights are summed over blocks of tokens in a fixed
/// order, the blocks in double.
namespace quipu::inline QUIPU_REAL_NS {

struct Rwkv7Keys {
  Var erase;  ///< k k_k, of length 1
  Var write;  ///< erase rate
  Var key;    ///< k (1 + (rate - 1) k_a)
};
Rwkv7Keys rwkv7_keys(Tape& tape, const Var& k, const Var& rate, const Var& k_k, const Var& k_a);

struct Rwkv7OutputInput {
  Var y{};  ///< from the memory, normalised
  Var r{}, key{}, v{}, gate{};
  Var r_k{};  ///< [H,N]
};
/// o = (y + (sum_n r key r_k) v) gate.
Var rwkv7_output(Tape& tape, const Rwkv7OutputInput& in);

/// g = -scale sigmoid(x), a log decay that is bounded from below.
Var bounded_decay(Tape& tape, const Var& x, Real scale);

/// y = a + (b - a) share, elementwise.
Var blend(Tape& tape, const Var& a, const Var& b, const Var& share);

}  // namespace quipu::inline QUIPU_REAL_NS
