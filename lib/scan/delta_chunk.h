#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "scan/decay_blocks.h"
#include "scan/delta_scan.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The rows of one head of one chunk of C tokens; the same struct holds their gradients.
struct DeltaRows {
  Matrix q;          ///< [C,K]
  Matrix k;          ///< [C,K]
  Matrix v;          ///< [C,V]
  Matrix beta;       ///< [C,1] in the delta rule, else [C,0]
  Matrix erase;      ///< [C,K] in the general form, else [C,0]
  Matrix write;      ///< likewise
  Matrix log_decay;  ///< [C,1] or [C,K] as the decay says; [C,0] without
};

/// The products of one chunk of one head in the forms of `delta_scan`, with the workspace for them; one a thread.
///
/// All that reads the state stands in one list of 2C rows: first what erases (e_t, in the delta rule beta_t k_t), then
/// the queries. What writes is one list of keys and values: C in the delta rule (k with w_t = beta_t (v_t - k_t D_t
/// S)), 2C in the general form (first b with u_t = -e_t S, then k with v_t). With the scores of rows against keys, [L;
/// P] and in the general form [L L'; P P'], and what the rows read of the state before the chunk, [R_e; R_q]:
///   delta rule     (I + L) W = beta V - R_e;         Y = R_q + P W
///   general form   (I + L) U = -R_e - L' V;          Y = R_q + P U + P' V
/// Decays scale rows and keys, block by block, relative to the block's reference. Their blocks are cut over positions:
/// position p is the state before token p, so that queries and keys of token t stand at t + 1, and what erases where
/// it reads: at t in the general form, at t + 1, after the decay, in the delta rule.
class DeltaChunk {
 public:
  DeltaChunk(Decay decay, bool general, Index key_width, Index value_width, Real scale);

  /// Advances the state in place and writes y [C,V].
  void forward(const DeltaRows& in, Matrix state, Matrix y);

  /// before, after: the states around the chunk;  dstate: the gradient of the state after the chunk, turned in place
  /// into that of the state before it.  Writes the gradients `din` in full.
  void backward(const DeltaRows& in, Matrix before, Matrix after, Matrix dy, Matrix dstate, const DeltaRows& din);

 private:
  /// Rows [row, row + count) that see the state and the keys of tokens before `tokens`, at one block's reference.
  struct Group {
    Index row = 0, count = 0, tokens = 0;
  };

  void prepare(const DeltaRows& in);
  std::array<Group, 2> groups_of(Index block) const;
  /// Tokens whose keys stand in a block.
  Index first_key(Index block) const { return std::max<Index>(blocks_.begin(block) - 1, 0); }
  Index end_key(Index block) const { return blocks_.end(block) - 1; }
  /// Brings the state and the panel to a block's reference, and the block's keys into the panel.
  void enter(Index block, const DeltaRows& in, Matrix state);
  /// Calls `fn(group)` for all groups in order, with the state and the panel at the group's reference; `entered`: they
  /// already are at that of the only block.
  template <typename F>
  void sweep(const DeltaRows& in, Matrix state, bool entered, F&& fn);
  /// Calls `fn(first, count)` for the stretches of keys that a group sees.
  template <typename F>
  void for_keys(const Group& group, F&& fn) const;
  /// Scores, the reads of the first `reading` rows, and the solution of the triangular system; the state and the panel
  /// end at the last reference.
  void solve(const DeltaRows& in, Matrix state, Index reading);
  void backward_writes(const DeltaRows& in, Matrix dy, Matrix dstate, const DeltaRows& din);
  void backward_keys(Matrix dstate, const DeltaRows& din);
  void backward_rows(const DeltaRows& in, const DeltaRows& din);
  void begin_decay(Matrix after, Matrix dstate);
  void finish_decay(const DeltaRows& in, const DeltaRows& din);
  /// Zeros where a key comes after the row that reads it.
  void clear_future(Matrix scores) const;
  const Real* row_growth(Index row) const {
    return blocks_.growth(row < tokens_ ? row + erase_lag() : row - tokens_ + 1);
  }
  Index erase_lag() const { return general_ ? 0 : 1; }

  Index keys() const { return streams_ * tokens_; }
  Matrix rows_by(std::vector<Real>& storage, Index width) const { return {storage.data(), 2 * tokens_, width, width}; }
  Matrix keys_by(std::vector<Real>& storage, Index width) const { return {storage.data(), keys(), width, width}; }
  Matrix stream(Matrix by_keys, Index m) const { return by_keys.slice(m * tokens_, (m + 1) * tokens_); }
  Matrix key_of(const DeltaRows& in, Index m) const { return general_ && m == 0 ? in.write : in.k; }

  Decay decay_;
  bool general_;
  Index key_width_, value_width_, streams_, tokens_ = 0;
  Real scale_;
  DecayBlocks blocks_;
  std::vector<Real> rows_, drows_, reads_, dreads_;      // [2C,K] and [2C,V]
  std::vector<Real> panel_, dpanel_, writes_, dwrites_;  // [keys,K] and [keys,V]
  std::vector<Real> scores_, dscores_, state_;           // [2C,keys] and [K,V]
  std::vector<double> decay_sum_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
