#pragma once
#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "mixers/instance.h"
#include "scan/outer_scan.h"

// How far a mixer is from keeping an invariant: 0 for a perfect one. The tests of the registry ask for small numbers,
// the test of the tests, with faults put in, for large ones.
namespace quipu::inline QUIPU_REAL_NS {

/// Two pieces against one: outputs and states.
inline double split_error(const MixerInstance& m, Index length, Index cut, bool used) {
  const Tensor x = random_tensor({2, length, m.dim}, 1);
  const State start = used ? m.used_state(2) : m.mixer->initial_state(2);
  State whole = start, pieces = start;
  const Tensor y = m.forward(x, whole);
  const Tensor first = m.forward(tokens_of(x, 0, cut), pieces);
  const Tensor second = m.forward(tokens_of(x, cut, length), pieces);
  return std::max({relative_error(first, tokens_of(y, 0, cut)), relative_error(second, tokens_of(y, cut, length)),
                   state_error(pieces, whole)});
}

/// The recurrent step against the parallel form, and each going on from the other's state.
inline double step_error(const MixerInstance& m, Index length, bool used) {
  const Tensor x = random_tensor({2, length, m.dim}, 2), more = random_tensor({2, 5, m.dim}, 3);
  const State start = used ? m.used_state(2) : m.mixer->initial_state(2);
  State parallel = start, recurrent = start;
  const Tensor y = m.forward(x, parallel);
  double worst = relative_error(m.steps(x, recurrent), y);
  worst = std::max(worst, state_error(recurrent, parallel));
  const Tensor z = m.steps(more, parallel);
  return std::max(worst, relative_error(m.forward(more, recurrent), z));
}

/// How much a changed token changes before itself; infinite where it changes nothing after itself either.
inline double causality_error(const MixerInstance& m, Index length, Index changed) {
  const Tensor x = random_tensor({2, length, m.dim}, 4), other = x.clone();
  for (Index b = 0; b < 2; ++b)
    for (Index c = 0; c < m.dim; ++c) other.data()[(b * length + changed) * m.dim + c] += 3;
  State a = m.mixer->initial_state(2), b = a;
  const Tensor y = m.forward(x, a), z = m.forward(other, b);
  if (!(relative_error(tokens_of(z, changed, length), tokens_of(y, changed, length)) > 1e-3)) return INFINITY;
  return relative_error(tokens_of(z, 0, changed), tokens_of(y, 0, changed));
}

/// Documents, lanes and padding against each run alone.
inline double isolation_error(const MixerInstance& m) {
  const Index length = 2 * kOuterChunk + 5;
  const std::vector<Index> bounds{0, 40, 41, kOuterChunk + 30, length}, one{0}, two{1}, three{2};
  const Layout layout{3, length, {length, 70, 0}, {{bounds[1], bounds[2], bounds[3]}, {}, {}}};
  const Tensor x = random_tensor({3, length, m.dim}, 5);
  const State start = m.used_state(3);
  State state = start;
  const Tensor y = m.forward(x, layout, state);
  double worst = 0;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {  // lane 0: each document alone
    State alone = i == 0 ? start.gather(one) : m.mixer->initial_state(1);
    const Tensor z = m.forward(tokens_of(lane_of(x, 0), bounds[i], bounds[i + 1]), alone);
    worst = std::max(worst, relative_error(tokens_of(lane_of(y, 0), bounds[i], bounds[i + 1]), z));
    if (i + 2 == bounds.size()) worst = std::max(worst, state_error(state.gather(one), alone));
  }
  State alone = start.gather(two);  // lane 1: its 70 tokens alone;  lane 2: padding leaves the state as it was
  const Tensor z = m.forward(tokens_of(lane_of(x, 1), 0, 70), alone);
  return std::max({worst, relative_error(tokens_of(lane_of(y, 1), 0, 70), z), state_error(state.gather(two), alone),
                   state_error(state.gather(three), start.gather(three))});
}

/// How much what stands in the padding changes outputs and states.
inline double padding_error(const MixerInstance& m) {
  const Index length = kOuterChunk + 9, valid = kOuterChunk - 7;
  const Layout layout{1, length, {valid}, {}};
  const Tensor x = random_tensor({1, length, m.dim}, 6), other = x.clone();
  std::fill(other.data() + valid * m.dim, other.data() + length * m.dim, Real{1000});
  State a = m.used_state(1), b = a;
  const Tensor y = m.forward(x, layout, a), z = m.forward(other, layout, b);
  return std::max(relative_error(tokens_of(z, 0, valid), tokens_of(y, 0, valid)), state_error(b, a));
}

#ifdef QUIPU_DOUBLE
/// The tape's gradients of inputs, states and parameters against central differences along random directions, with a
/// loss over all outputs and the final state; the worst, relative to the gradient's size.
class GradientCheck {
 public:
  /// `constants`: leaves that never carry a gradient; nothing asks for one of theirs, and none may arrive.
  GradientCheck(const MixerInstance& m, const Layout& layout, std::set<std::string> constants = {})
      : m_(m),
        layout_(layout),
        constants_(std::move(constants)),
        x_(random_tensor({layout.batch, layout.length, m.dim}, 20)),
        start_(m.used_state(layout.batch)) {}

  double error() {
    m_.parameters->zero_gradients();
    Tape tape(true);
    const Run r = run(tape);
    tape.backward(seeds(r));
    double worst = directional(x_.span(), r.x.gradient()->sum().span());
    for (const auto& e : m_.parameters->trainable()) {
      const auto n = static_cast<std::size_t>(e.end - e.begin), at = static_cast<std::size_t>(e.begin);
      worst = std::max(worst,
                       directional(m_.parameters->values().subspan(at, n), m_.parameters->gradients().subspan(at, n)));
    }
    for (std::size_t i = 0; i < start_.leaves().size(); ++i)
      if (constants_.contains(start_.leaves()[i].name)) {
        if (r.after.real(i).wants_gradient() || !r.before.real(i).gradient()->empty()) return INFINITY;
      } else if (!start_.leaves()[i].is_integer() && !r.before.real(i).gradient()->empty())
        worst = std::max(worst, directional(start_.real(i).value().span(), r.before.real(i).gradient()->sum().span()));
    return worst;
  }

 private:
  struct Run {
    Var x, y;
    State before, after;
  };

  Run run(Tape& tape) const {
    Run r{Var::leaf(x_), {}, start_, {}};
    for (StateLeaf& leaf : r.before.leaves())
      if (!leaf.is_integer()) leaf.value = Var::leaf(leaf.value.value());
    r.after = r.before;
    r.y = m_.mixer->forward(tape, r.x, {.layout = layout_}, r.after);
    return r;
  }

  /// Fixed random numbers for y outside the padding, and for the final state.
  std::vector<std::pair<Var, Tensor>> seeds(const Run& r) const {
    Tensor cotangent = random_tensor(r.y.shape(), 21);
    const Index row = r.y.value().count() / (layout_.batch * layout_.length);
    for (Index b = 0; b < layout_.batch; ++b)
      std::fill(cotangent.data() + (b * layout_.length + layout_.lane_length(b)) * row,
                cotangent.data() + (b + 1) * layout_.length * row, Real{0});
    std::vector<std::pair<Var, Tensor>> all{{r.y, cotangent}};
    std::uint64_t site = 30;
    for (const StateLeaf& leaf : r.after.leaves())
      if (!leaf.is_integer() && !constants_.contains(leaf.name))
        all.emplace_back(leaf.value, random_tensor(leaf.value.shape(), ++site));
    return all;
  }

  double loss() const {
    Tape tape(false);
    double sum = 0;
    for (const auto& [value, cotangent] : seeds(run(tape)))
      for (Index i = 0; i < cotangent.count(); ++i) sum += value.value().data()[i] * cotangent.data()[i];
    return sum;
  }

  double directional(std::span<double> values, std::span<const double> gradient) const {
    const Tensor direction = random_tensor({static_cast<Index>(values.size())}, 77);
    const std::vector<double> saved(values.begin(), values.end());
    double analytic = 0, norm = 0, best = INFINITY;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      analytic += gradient[i] * direction.data()[i];
      norm += gradient[i] * gradient[i];
    }
    for (const double step : {1e-4, 1e-5, 1e-6}) {
      double difference = 0;
      for (const double sign : {1.0, -1.0}) {
        for (std::size_t i = 0; i < saved.size(); ++i) values[i] = saved[i] + sign * step * direction.data()[i];
        difference += sign * loss() / (2 * step);
      }
      best = std::min(best, std::abs(difference - analytic) / std::max(std::sqrt(norm), 1e-8));
    }
    std::copy(saved.begin(), saved.end(), values.begin());
    return best;
  }

  const MixerInstance& m_;
  Layout layout_;
  std::set<std::string> constants_;
  Tensor x_;
  State start_;
};
#endif

}  // namespace quipu::inline QUIPU_REAL_NS
