#pragma once
#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// [B,T,H W] seen as [B,T,H,W].
inline Var split_heads(const Var& y, Index heads) {
  return y.reshaped({y.extent(0), y.extent(1), heads, y.extent(2) / heads});
}

/// [B,T,H,W] seen as [B,T,H W].
inline Var join_heads(const Var& y) { return y.reshaped({y.extent(0), y.extent(1), y.extent(2) * y.extent(3)}); }

}  // namespace quipu::inline QUIPU_REAL_NS
