#pragma once
#include "grad/tape.h"

/// Products with an array that has fewer axes. Sums over tokens run in blocks of a fixed order, the blocks in double.
/// ShapeError where the shapes do not fit.
namespace quipu::inline QUIPU_REAL_NS {

/// y = x w, each column by its own number.  x, y: [..,D];  w: [D].
Var scale_columns(Tape& tape, const Var& x, const Var& w);

/// y = a + w x, one w a head.  a, x, y: [..,H,V];  w: [H].
Var add_scaled_heads(Tape& tape, const Var& a, const Var& x, const Var& w);

}  // namespace quipu::inline QUIPU_REAL_NS
