#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What causal attention by position reads. The logits of the token at position p of its document, over the earlier
/// positions s <= p < N, are either table[h,p,s], or q . keys[h,s] + bias[h,s] with a query of the token or of p.
struct PositionAttentionInput {
  Var table{};  ///< [H,N,N]; undefined: by queries
  Var q{};      ///< [B,T,H,K], one a token, or [H,N,K], one a position
  Var keys{};   ///< [H,N,K]
  Var bias{};   ///< [H,N] or undefined
  Var v{};      ///< [B,P+T,H,V]: P rows from before, then the T tokens
  /// Of each lane, how many of the P rows are valid: the last ones, its open document so far. Empty: none of them.
  std::vector<Index> past{};
};

/// y_t = sum_s softmax_s(logits) v_s over the tokens of t's document up to t, [B,T,H,V]; zero on padding. Works in
/// blocks of tokens, and backward recomputes their weights: no T x T matrix is stored beside the parameters.
/// The caller sees to it that no document is longer than N; throws ShapeError where the inputs disagree.
/// Source: arXiv:2005.00743.
Var position_attention(Tape& tape, const PositionAttentionInput& input, const Layout& layout);

/// One token of one head at position p: logits[0..p] (overwritten), v: [p+1,V], y: [V].
void position_attention_step(Real* logits, Matrix v, Real* y);

}  // namespace quipu::inline QUIPU_REAL_NS
