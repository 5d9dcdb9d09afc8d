#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "scan/decay_blocks.h"
#include "scan/outer_scan.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The rows of one chunk of C tokens that the states of one key head read: one state read by G queries, or several
/// states that share the key and the query. Holds values or their gradients alike.
struct OuterChunkInput {
  std::vector<Matrix> q;  ///< [C,K], one a query head
  Matrix k;               ///< [C,K]
  std::vector<Matrix> v;  ///< [C,V], one a state
  /// [C,1], [C,K] or [C,V] as the decay says, [C,0] without; one a state. Of stride 0 where all tokens have the same.
  /// A gradient without data is not wanted.
  std::vector<Matrix> log_decay;
  /// [K] or null. Its gradient and that of a decay of stride 0 add up from chunk to chunk, all others are set.
  Real* bonus = nullptr;
};

/// What a chunk writes, or its gradient.
struct OuterChunkOutput {
  std::vector<Matrix> y;            ///< [C,V], one a query head or one a state
  std::vector<Matrix> denominator;  ///< [C,1], one a query head; empty without normaliser
};

/// The state of one head: S [K,V], and z [K] or null.
struct OuterState {
  Matrix s;
  Real* z = nullptr;
};

/// The products of one chunk of one key head in the forms of `OuterScan`, with the workspace for them; one a thread.
/// With a bonus the read lags behind the write by one token: key row s stands at position s + 1, where it is first
/// read from the state, and so do its decays.
class OuterChunk {
 public:
  /// queries: of a state;  states: that share a key. `lagging` with a bonus.
  OuterChunk(Decay decay, Index key_width, Index value_width, Index queries, Index states, bool lagging);

  /// Advances the states in place and writes the outputs.
  void forward(const OuterChunkInput& in, const std::vector<OuterState>& states, const OuterChunkOutput& out);

  /// before, after: the states around the chunk;  out: what forward wrote;  dout: its gradients;  dstates: the
  /// gradients of the states after the chunk, turned in place into those of the states before it.
  void backward(const OuterChunkInput& in, const std::vector<OuterState>& before, const std::vector<OuterState>& after,
                const OuterChunkOutput& out, const OuterChunkOutput& dout, const std::vector<OuterState>& dstates,
                const OuterChunkInput& din);

 private:
  // A decay on the key index (or one for the whole state): queries and keys are scaled.
  void forward_key(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out);
  void backward_key(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout, OuterState dstate,
                    const OuterChunkInput& din);
  void backward_key_state(const OuterChunkInput& in, const OuterChunkOutput& dout, OuterState dstate,
                          const OuterChunkInput& din);
  // A decay on the value index (or one for each of several states): values and outputs are scaled.
  void forward_value(const OuterChunkInput& in, const std::vector<OuterState>& states, const OuterChunkOutput& out);
  void backward_value(const OuterChunkInput& in, const std::vector<OuterState>& before,
                      const std::vector<OuterState>& after, const OuterChunkOutput& out, const OuterChunkOutput& dout,
                      const std::vector<OuterState>& dstates, const OuterChunkInput& din);
  void backward_value_reads(const OuterChunkInput& in, Matrix before, const OuterChunkOutput& dout, Matrix dstate,
                            const OuterChunkInput& din, std::size_t j);
  void backward_value_state(const OuterChunkInput& in, const OuterChunkOutput& dout, Matrix dstate,
                            const OuterChunkInput& din, std::size_t j);
  /// Scores of all queries, without decay, in scores_.
  void plain_scores(const OuterChunkInput& in);

  void forward_bonus(const OuterChunkInput& in, const OuterChunkOutput& out);
  void backward_bonus(const OuterChunkInput& in, const OuterChunkOutput& dout, const OuterChunkInput& din);
  void backward_decay(Matrix dlog_decay, Matrix minus, Matrix dminus, std::span<const Matrix> plus,
                      std::span<const Matrix> dplus);
  /// The part of the decay's gradient that comes through the state after the chunk.
  void read_state_gradient(OuterState after, OuterState dstate);

  bool scales_values() const { return decay_ == Decay::value || states_ > 1; }
  /// Rows of queries of block i.
  Index begin(Index i) const { return blocks_.begin(i); }
  Index end(Index i) const { return std::min(blocks_.end(i), rows_); }
  /// Rows of keys that block i sees, and how many of them the blocks before it saw.
  Index keys(Index i) const { return blocks_.end(i) - lag_; }
  Index earlier_keys(Index i) const { return std::max<Index>(blocks_.begin(i) - lag_, 0); }
  /// Lets the rows of keys of block i into the panel, and brings the earlier ones to the block's reference.
  void enter_block(Index i, Matrix x, Matrix panel);
  /// Takes the rows of keys of block i of the panel's gradient out into `dx`, and brings the earlier ones back.
  void leave_block(Index i, Matrix panel, Matrix dx);
  /// Zeros where a key comes after the query, in the scores of the queries from row `begin` on.
  void clear_future(Matrix scores, Index begin) const;
  /// Rows of block i of a head's x (queries, or gradients of outputs) times their growth, kept until the next chunk.
  Matrix scale_by_growth(Index i, Matrix x, Index head);
  /// What scale_by_growth made.
  Matrix scaled(Index i, Matrix x, Index head);
  /// Multiplies rows of queries of block i by their growth, in place.
  void grow(Index i, Matrix rows);
  /// Scores of block i, or of the whole chunk, for one query head.
  Matrix scores(std::vector<Real>& storage, Index i, Index head) const;
  Matrix all_scores(std::vector<Real>& storage, Index head) const;

  Decay decay_;
  Index queries_, states_, lag_;
  Index rows_ = 0;  ///< of the chunk at hand
  DecayBlocks blocks_;
  std::vector<Real> panel_, scaled_, scores_, dscores_, state_, z_;
  std::vector<double> decay_sum_, decay_total_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
