#pragma once
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "models/sequence_model.h"

namespace quipu {

/// How far gradients reach back across the segments of a training window.
struct GradientReach {
  static constexpr Index kAll = std::numeric_limits<Index>::max();

  /// Exact: the loss of segment s is differentiated through segments s - depth .. s, and what comes in from before is a
  /// constant. The depth that truncates takes depth + 1 backward passes a segment; 0 and kAll take one.
  Index depth = kAll;
  /// Cheap, and not the same: all states are detached at every n-th boundary; 0: at none. For depth kAll.
  Index detach_every = 0;
  /// Keep the states between segments alone, and run each segment again in its backward pass.
  bool recompute = false;
};

inline namespace QUIPU_REAL_NS {

/// A segment as the model reads it: B lanes of T tokens, [B,T] row-major.
struct TrainingSegment {
  std::span<const std::int32_t> tokens;
  Context context;
};

/// The loss of segment `index`, a scalar on the tape, from its hidden rows. Called once a segment, in any order.
using SegmentLoss = std::function<Var(Tape& tape, std::size_t index, const Var& hidden)>;

/// Forward and backward through the segments of a window, one after another, the model's state carried across: adds
/// the gradients of the summed losses to the model's. `state`: before the first segment, a constant; then after the
/// last one, detached.
/// Sources: arXiv:2207.06881 (depth), arXiv:1901.02860 (detached memory).
void backward_through_segments(const SequenceModel& model, std::span<const TrainingSegment> segments,
                               const SegmentLoss& loss, const GradientReach& reach, ModelState& state);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
