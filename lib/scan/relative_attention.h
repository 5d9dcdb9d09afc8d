#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Queries of one segment of one lane, and the rows that they may see: cached ones, then the segment's own so far, the
/// last of which are the queries.
struct RelativeUnit {
  Index lane = 0;
  Stretch past{0, 0};  ///< rows of the cached keys and values, which no other lane has
  Stretch own{0, 0};   ///< rows of `qkv`, which no other unit has
  Index queries = 0;   ///< the last so many of the own rows
  Index out = 0;       ///< row of y of the first query
  /// Among the own rows, ascending: rows that see one another whole.
  std::vector<Stretch> blocks{};
};

/// What attention by relative distance reads.
struct RelativeAttentionInput {
  Var qkv{};        ///< [N,3 H K]: queries, keys and values of a row
  Var past{};       ///< [P,2 H K]: keys and values of a cached row; undefined where no unit has any
  Var distances{};  ///< [R,H K]: row r stands for distance R-1-r, the first one for all greater distances too
  Var content_bias{}, position_bias{};  ///< u, v: [H,K]
  std::vector<RelativeUnit> units{};    ///< those of a lane one behind another
  Index window = 0;                     ///< rows that a query sees, itself included; 0: all
  bool blocks_see_past = false;         ///< cached rows are visible in blocks
  Index segment = 0;                    ///< own rows of a whole segment
};

/// y_i = sum_j softmax_j(((q_i + u) . k_j + (q_i + v) . r_(i-j)) / sqrt(K)) v_j over the rows j that i sees: cached and
/// earlier ones, and in a block the later ones too; y: `shape` = [..,H K], zero where no unit writes.
///
/// The published code finds distances by shifting rows of the products (q + v) . r, and so gives later rows what the
/// shift brings there: nothing one row ahead, and d >= 2 rows ahead the term of row i+1 at the distance
/// (cached rows + `segment` + 1 - d). So does this.
///
/// No weights are stored: backward computes them again. Source: arXiv:1901.02860.
Var relative_attention(Tape& tape, const RelativeAttentionInput& input, const Shape& shape);

}  // namespace quipu::inline QUIPU_REAL_NS
