#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What causal softmax attention reads: H query heads over Hk key heads (H = G Hk; query head h reads key head h / G).
struct SoftmaxWindowInput {
  Var q{};  ///< [B,T,H,K]
  Var k{};  ///< [B,P+T,Hk,K]: P rows from before, then the T tokens of q
  Var v{};  ///< [B,P+T,Hk,V]
  /// Of each lane, how many of the P rows are valid: the last ones. Empty: none of them.
  std::vector<Index> past{};
  Real scale = 1;
  Index window = 0;  ///< key s is visible to query t where 0 <= t - s < window; 0: all earlier keys
};

/// y_t = sum_s softmax_s(scale q_t . k_s) v_s over the visible keys of the same document, those of the same block of
/// the layout included; y: [B,T,H,V], zero on padding. Works in blocks of queries and keys with running maxima, and
/// skips blocks that nobody sees: no T x T matrix is ever stored. Backward recomputes the scores from the logarithm of
/// each row's sum. Source: arXiv:2205.14135.
Var softmax_window(Tape& tape, const SoftmaxWindowInput& input, const Layout& layout);

/// One token of one query head.  q: [K];  k, v: the visible keys and values, [n,K] and [n,V];  y: [V];  scores: room
/// for n values.
void softmax_window_step(const Real* q, Matrix k, Matrix v, Real scale, Real* y, Real* scores);

}  // namespace quipu::inline QUIPU_REAL_NS
