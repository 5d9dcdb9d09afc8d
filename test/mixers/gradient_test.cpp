// Gradients of every mixer of the registry against finite differences: inputs, states and parameters.
#include <doctest/doctest.h>

#include "mixers/instance.h"
#include "scan/outer_scan.h"

using namespace quipu;

#ifdef QUIPU_DOUBLE
namespace {

struct Run {
  Var x, y;
  State before, after;
};

Run run(const MixerInstance& m, const Tensor& x, const State& start, const Layout& layout, Tape& tape) {
  Run r{Var::leaf(x), {}, start, {}};
  for (StateLeaf& leaf : r.before.leaves())
    if (!leaf.is_integer()) leaf.value = Var::leaf(leaf.value.value());
  r.after = r.before;
  r.y = m.mixer->forward(tape, r.x, {.layout = layout}, r.after);
  return r;
}

/// Sum of all outputs times fixed numbers: of y outside the padding, and of the final state.
std::vector<std::pair<Var, Tensor>> seeds(const Run& r, const Layout& layout) {
  Tensor cotangent = random_tensor(r.y.shape(), 21);
  const Index row = r.y.value().count() / (layout.batch * layout.length);
  for (Index b = 0; b < layout.batch; ++b)
    for (Index i = (b * layout.length + layout.lane_length(b)) * row; i < (b + 1) * layout.length * row; ++i)
      cotangent.data()[i] = 0;
  std::vector<std::pair<Var, Tensor>> all{{r.y, cotangent}};
  std::uint64_t site = 30;
  for (const StateLeaf& leaf : r.after.leaves())
    if (!leaf.is_integer()) all.emplace_back(leaf.value, random_tensor(leaf.value.shape(), ++site));
  return all;
}

double loss(const MixerInstance& m, const Tensor& x, const State& start, const Layout& layout) {
  Tape tape(false);
  double sum = 0;
  for (const auto& [value, cotangent] : seeds(run(m, x, start, layout, tape), layout))
    for (Index i = 0; i < cotangent.count(); ++i) sum += value.value().data()[i] * cotangent.data()[i];
  return sum;
}

/// The derivative along a random direction of `values` against the gradient, relative to the gradient's size.
double directional_error(std::span<double> values, std::span<const double> gradient, const std::function<double()>& f) {
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
      difference += sign * f() / (2 * step);
    }
    best = std::min(best, std::abs(difference - analytic) / std::max(std::sqrt(norm), 1e-8));
  }
  std::copy(saved.begin(), saved.end(), values.begin());
  return best;
}

}  // namespace

TEST_CASE("mixers: gradients agree with finite differences") {
  for (const MixerVariant& variant : mixer_variants()) {
    INFO(describe(variant));
    MixerInstance m(variant);
    const Index length = kOuterChunk + 9;
    for (const Layout& layout : {Layout::plain(2, 11), Layout{2, length, {length, length - 5}, {{3, 40}, {}}}}) {
      CAPTURE(layout.length);
      const Tensor x = random_tensor({layout.batch, layout.length, m.dim}, 20);
      const State start = m.used_state(layout.batch);
      m.parameters->zero_gradients();
      Tape tape(true);
      const Run r = run(m, x, start, layout, tape);
      tape.backward(seeds(r, layout));

      const auto again = [&] { return loss(m, x, start, layout); };
      CHECK(directional_error(x.span(), r.x.gradient()->sum().span(), again) < 1e-6);
      for (const auto& entry : m.parameters->trainable()) {
        CAPTURE(entry.name);
        const auto n = static_cast<std::size_t>(entry.end - entry.begin), at = static_cast<std::size_t>(entry.begin);
        CHECK(directional_error(m.parameters->values().subspan(at, n), m.parameters->gradients().subspan(at, n),
                                again) < 1e-6);
      }
      for (std::size_t i = 0; i < start.leaves().size(); ++i) {
        const StateLeaf& leaf = start.leaves()[i];
        CAPTURE(leaf.name);
        if (leaf.is_integer() || r.before.real(i).gradient()->empty()) continue;
        // rows of a cache that hold no token have no gradient and no effect
        CHECK(directional_error(leaf.value.value().span(), r.before.real(i).gradient()->sum().span(), again) < 1e-6);
      }
    }
  }
}
#endif
