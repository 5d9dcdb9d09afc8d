#pragma once
#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y = x / (d + eps), one d a row.  x: [..,V];  d: [..];  y: [..,V]. The normalisation of kernel attention.
Var quotient(Tape& tape, const Var& x, const Var& d, double eps);

}  // namespace quipu::inline QUIPU_REAL_NS
