#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What AFT with position biases reads.
struct AftWindowInput {
  Var k{}, v{};  ///< [B,P+T,D]: P rows from before, then the T tokens
  /// Of each lane, how many of the P rows are valid: the last ones. They are the document's first tokens. Empty: none.
  std::vector<Index> past{};
  Var bias{};        ///< w [N,N], of query (row) and key positions in their document
  Index window = 0;  ///< the bias acts where 0 <= t - s < window, beyond it is 0; 0: everywhere
};

/// A mean of the values so far, by channel, weighted by key and positions:
///   y_t = sum_{s<=t} e^{k_s + w_ts} v_s / sum_{s<=t} e^{k_s + w_ts},   y: [B,T,D]; zero on padding.
/// In tiles of kAftTile queries and keys: products of e^{w - its maximum} and e^{k - its maximum}, joined in log space;
/// on the diagonal, and where biases spread too far for that, term by term. Backward recomputes the weights from the
/// logarithm of each sum. Throws ShapeError where the inputs disagree, InputError where a document has more than N
/// tokens. Source: arXiv:2105.14103.
Var aft_window(Tape& tape, const AftWindowInput& input, const Layout& layout);

inline constexpr Index kAftTile = 64;

/// One token.  k, v: the keys and values so far, itself included, [n,D];  bias: its row of w, [n];  y: [D];  scratch:
/// room for 3 D numbers. Over threads where there is enough to do.
void aft_window_step(Matrix k, Matrix v, Real* bias, Real* y, Real* scratch);

}  // namespace quipu::inline QUIPU_REAL_NS
