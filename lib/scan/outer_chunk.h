#pragma once
#include <vector>

#include "scan/decay_blocks.h"
#include "scan/outer_scan.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The rows that one state head reads of one chunk of C tokens, and what the chunk starts from.
struct OuterChunkInput {
  std::vector<Matrix> q;  ///< [C,K], one a query head
  Matrix k;               ///< [C,K]
  Matrix v;               ///< [C,V]
  Matrix log_decay;       ///< [C,1], [C,K] or [C,V] as the decay says; [C,0] without
};

/// What a chunk writes.
struct OuterChunkOutput {
  std::vector<Matrix> y;            ///< [C,V], one a query head
  std::vector<Matrix> denominator;  ///< [C,1], one a query head; empty without normaliser
};

/// The state of one head: S [K,V], and z [K] or null.
struct OuterState {
  Matrix s;
  Real* z = nullptr;
};

/// The gradients of one chunk, each written in full.
struct OuterChunkGradient {
  std::vector<Matrix> q;
  Matrix k, v, log_decay;
};

/// The products of one chunk of one head in the forms of `OuterScan`, with the workspace for them; one a thread.
class OuterChunk {
 public:
  OuterChunk(Decay decay, Index key_width, Index value_width, Index groups);

  /// Advances the state in place and writes the outputs.
  void forward(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out);

  /// before, after: the states around the chunk;  out: what forward wrote;  dout: its gradients;  dstate: the gradient
  /// of the state after the chunk, turned in place into that of the state before it.
  void backward(const OuterChunkInput& in, OuterState before, OuterState after, const OuterChunkOutput& out,
                const OuterChunkOutput& dout, OuterState dstate, const OuterChunkGradient& din);

 private:
  void forward_key(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out);
  void forward_value(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out);
  void backward_key(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout, OuterState dstate,
                    const OuterChunkGradient& din);
  void backward_value(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout, OuterState dstate,
                      const OuterChunkGradient& din);
  void backward_decay(const OuterChunkInput& in, const OuterChunkOutput& out, const OuterChunkOutput& dout,
                      const OuterChunkGradient& din);
  /// The part of the decay's gradient that comes through the state after the chunk.
  void read_state_gradient(OuterState after, OuterState dstate);
  /// Lets the rows of block i of `x` into the panel, and brings the earlier ones to the block's reference.
  void enter_block(Index i, Matrix x, Matrix panel);
  /// Takes the rows of block i of the panel's gradient out into `dx`, and brings the earlier ones back.
  void leave_block(Index i, Matrix panel, Matrix dx);
  /// Scores of block i against all rows up to its end, with zeros where a key comes after the query.
  static void causal_scores(Matrix scores, Matrix rows, Matrix panel);
  static void clear_future(Matrix scores);
  Matrix growth_scaled(Index i, Matrix x, std::vector<Real>& storage, Index offset);

  Decay decay_;
  Index groups_;
  DecayBlocks blocks_;
  std::vector<Real> panel_, scaled_, scores_, kept_scores_, state_, z_;
  std::vector<double> decay_sum_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
