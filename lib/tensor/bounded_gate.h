#pragma once
#include "base/real.h"

namespace quipu::inline QUIPU_REAL_NS::kernels {

/// A forget gate that stays above a bound 0 <= beta < 1 of its own for every channel:
///   alpha = beta + (1 - beta) sigmoid(f);   g = log alpha,  k = 1 - alpha, both with all their digits.
void bounded_gate(Real* g, Real* k, const Real* f, const Real* beta, Index n);
/// Given dg and dk: df, and dbeta of this row alone (0 where beta is 0). df may be dg, dbeta may be dk.
void bounded_gate_backward(Real* df, Real* dbeta, const Real* dg, const Real* dk, const Real* f, const Real* beta,
                           Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
