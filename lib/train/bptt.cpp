#include "train/bptt.h"

#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// One tensor for every real leaf of a state, in order; undefined where no gradient arrived.
using StateGradient = std::vector<Tensor>;

template <typename F>
void for_real_leaves(ModelState& state, F&& fn) {
  for (State& layer : state.layers)
    for (StateLeaf& leaf : layer.leaves())
      if (!leaf.is_integer()) fn(leaf.value);
}

/// A recorded run of one segment: what went in, and what came out.
struct Run {
  Tape tape{true};
  ModelState in, out;
  Var loss;
};

class SegmentedBackward {
 public:
  SegmentedBackward(const SequenceModel& model, std::span<const TrainingSegment> segments, const SegmentLoss& loss)
      : model_(model), segments_(segments), loss_(loss) {}

  /// Segments [first, last) on one tape.
  void together(std::size_t first, std::size_t last, ModelState& state) const {
    Tape tape(true);
    std::vector<std::pair<Var, Tensor>> seeds;
    for (std::size_t s = first; s < last; ++s) {
      const Var hidden = model_.forward(tape, segments_[s].tokens, segments_[s].context, state);
      const Var loss = loss_(tape, s, hidden);
      seeds.emplace_back(loss, Tensor::full(loss.shape(), 1));
    }
    state = state.detached();
    tape.backward(seeds);
  }

  /// One segment at a time, from the last to the first, each run again from the state before it.
  void one_by_one(Index depth, ModelState& state) const {
    std::vector<ModelState> before;
    for (const TrainingSegment& segment : segments_) {
      before.push_back(state);
      Tape tape(false);
      Context context = segment.context;
      context.keep_state = true;
      model_.forward(tape, segment.tokens, context, state);
    }
    // What arrives at the state after a segment, by how many segments lie between: losses of the same age travel
    // together, and all do where none is ever too old.
    std::vector<StateGradient> arriving;
    for (std::size_t s = segments_.size(); s-- > 0;) {
      std::vector<StateGradient> leaving;
      const bool first = s == 0;
      if (depth == GradientReach::kAll) {
        leaving.push_back(pass(s, before[s], true, arriving.empty() ? StateGradient{} : arriving[0], !first));
      } else {
        leaving.push_back(pass(s, before[s], true, {}, !first && depth > 0));
        for (std::size_t age = 0; age < arriving.size(); ++age)
          leaving.push_back(pass(s, before[s], false, arriving[age], !first && static_cast<Index>(age) + 1 < depth));
        if (static_cast<Index>(leaving.size()) > depth) leaving.resize(static_cast<std::size_t>(depth));
      }
      arriving = std::move(leaving);
      before.pop_back();
    }
    state = state.detached();
  }

 private:
  /// Runs a segment and its backward pass; returns what arrives at the state before it, if that is wanted.
  StateGradient pass(std::size_t s, const ModelState& before, bool with_loss, const StateGradient& arriving,
                     bool wanted) const {
    Tape tape(true);
    ModelState state = before.detached();
    std::vector<Var> leaves;
    if (wanted) for_real_leaves(state, [&](Var& leaf) { leaves.push_back(leaf = Var::leaf(leaf.value())); });
    Context context = segments_[s].context;
    context.keep_state = !arriving.empty();
    const Var hidden = model_.forward(tape, segments_[s].tokens, context, state);
    std::vector<std::pair<Var, Tensor>> seeds;
    if (with_loss) {
      const Var loss = loss_(tape, s, hidden);
      seeds.emplace_back(loss, Tensor::full(loss.shape(), 1));
    }
    std::size_t i = 0;
    if (!arriving.empty())
      for_real_leaves(state, [&](const Var& leaf) {
        if (arriving[i].defined()) seeds.emplace_back(leaf, arriving[i]);
        ++i;
      });
    tape.backward(seeds);
    StateGradient leaving;
    for (const Var& leaf : leaves) leaving.push_back(leaf.gradient()->take());
    return leaving;
  }

  const SequenceModel& model_;
  std::span<const TrainingSegment> segments_;
  SegmentLoss loss_;
};

}  // namespace

void backward_through_segments(const SequenceModel& model, std::span<const TrainingSegment> segments,
                               const SegmentLoss& loss, const GradientReach& reach, ModelState& state) {
  const SegmentedBackward backward(model, segments, loss);
  const auto count = static_cast<Index>(segments.size());
  const bool all = reach.depth >= count - 1;
  const Index group = reach.depth == 0 ? 1 : reach.detach_every > 0 ? std::min(reach.detach_every, count) : count;
  // Nothing is run twice where no gradient crosses from one tape to the next.
  if (group == 1 || (all && !reach.recompute)) {
    for (Index first = 0; first < count; first += group)
      backward.together(static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(count, first + group)),
                        state);
    return;
  }
  if (!all) return backward.one_by_one(reach.depth, state);
  for (Index first = 0; first < count; first += group) {
    const SegmentedBackward part(
        model,
        segments.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(group, count - first))),
        [&](Tape& tape, std::size_t s, const Var& hidden) {
          return loss(tape, s + static_cast<std::size_t>(first), hidden);
        });
    part.one_by_one(GradientReach::kAll, state);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
