#pragma once
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
  Matrix a, b;       ///< [C,K] in the general form, else [C,0]
  Matrix log_decay;  ///< [C,1] or [C,K] as the decay says; [C,0] without
};

/// The products of one chunk of one head in the forms of `DeltaScan`, with the workspace for them; one a thread.
///
/// All that reads the state stands in one list of 2C rows: first what erases (e_t = beta_t k_t, or -a_t), then the
/// queries. What writes is one stream of C keys and values in the delta rule (k with w_t = beta_t (v_t - k_t D_t S)),
/// two in the general form (b with u_t = a_t S, k with v_t). With the scores of reading rows against keys, N = [L; P],
/// and what the rows read of the state before the chunk, R = [R_e; R_q]:
///   delta rule     (I + L) W = beta V - R_e;         Y = R_q + P W
///   general form   (I + L) U = -R_e - L' V;          Y = R_q + P U + P' V       (L', P': scores against k)
/// Decays scale rows and keys, block by block, relative to the block's reference.
class DeltaChunk {
 public:
  DeltaChunk(Decay decay, bool general, Index key_width, Index value_width, Real scale);

  /// Advances the state in place and writes y [C,V].
  void forward(const DeltaRows& in, Matrix state, Matrix y);

  /// before, after: the states around the chunk;  dstate: the gradient of the state after the chunk, turned in place
  /// into that of the state before it.  Writes the gradients `din` in full.
  void backward(const DeltaRows& in, Matrix before, Matrix after, Matrix dy, Matrix dstate, const DeltaRows& din);

 private:
  /// Reading rows [row, row + count) that see the state and the keys before `keys` at the reference of `block`; -1: of
  /// the state before the chunk.
  struct Group {
    Index block, row, count, keys;
  };

  void prepare(const DeltaRows& in);
  void list_groups();
  /// Calls `fn(group)` for all groups in order, with the state and the panels at the group's reference.
  template <typename F>
  void sweep(const DeltaRows& in, Matrix state, F&& fn);
  /// Scores, the reads of the first `reading` rows, and the solution of the triangular system; the state and the panels
  /// end at the last reference.
  void solve(const DeltaRows& in, Matrix state, Index reading);
  void backward_writes(const DeltaRows& in, Matrix dy, Matrix dstate, const DeltaRows& din);
  void backward_keys(Matrix dstate, const DeltaRows& din);
  void backward_rows(const DeltaRows& in, const DeltaRows& din);
  void begin_decay(Matrix after, Matrix dstate);
  void finish_decay(const DeltaRows& in, const DeltaRows& din);
  /// Zeros where a key comes after the row that reads it.
  void clear_future(Matrix scores) const;
  const Real* row_growth(Index row) const;

  Matrix rows(std::vector<Real>& storage, Index width) const { return {storage.data(), 2 * tokens_, width, width}; }
  Matrix half(std::vector<Real>& storage, Index width) const { return {storage.data(), tokens_, width, width}; }
  Matrix key_of(const DeltaRows& in, std::size_t stream) const { return general_ && stream == 0 ? in.b : in.k; }
  Matrix value_of(const DeltaRows& in, std::size_t stream) { return stream == 0 ? half(writes_, value_width_) : in.v; }

  Decay decay_;
  bool general_;
  Index key_width_, value_width_, tokens_ = 0;
  std::size_t streams_;
  Real scale_;
  DecayBlocks blocks_;
  std::vector<Group> groups_;
  std::array<std::vector<Real>, 2> panel_, dpanel_, scores_, dscores_;
  std::vector<Real> rows_, drows_, reads_, dreads_, writes_, state_;
  std::vector<double> decay_sum_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
