#pragma once
#include "grad/tape.h"

/// Operations between the rows of a token: its heads, and one factor a row.
namespace quipu::inline QUIPU_REAL_NS {

/// y = f x, one factor a row.  x, y: [..,W];  f: [..], a number for each row of x.
Var scale_rows(Tape& tape, const Var& x, const Var& factors);
/// The mean over the heads.  x: [..,H,W];  y: [..,1,W].
Var mean_heads(Tape& tape, const Var& x);
/// The same row for each of `heads` heads.  x: [..,W];  y: [..,heads,W].
Var repeat_heads(Tape& tape, const Var& x, Index heads);

}  // namespace quipu::inline QUIPU_REAL_NS
