// A test of the tests: a mixer with one fault put in must be caught by the measure that is there for it.
#include <doctest/doctest.h>

#include "mixers/measures.h"

using namespace quipu;

namespace {

enum class Fault { none, state_sign, step_sign, future, deaf_to_documents, reads_padding, gradient_sign, lost_state };

/// A mixer of the registry that does one thing wrong.
class FaultyMixer final : public Mixer {
 public:
  FaultyMixer(const MixerVariant& variant, Fault fault) : fault_(fault) {
    Options options(variant.options);
    inner_ = find_mixer(variant.name, false).make({variant.dim, variant.heads, 512, {1, 3}, options, shared_});
  }

  Var forward(Tape& tape, const Var& x, const Context& context, State& state) const override {
    const State before = state;
    Layout layout = context.layout;
    if (fault_ == Fault::deaf_to_documents) layout.starts.clear();
    if (fault_ == Fault::reads_padding) layout.lengths.clear();
    Var y = inner_->forward(tape, x, {.layout = layout, .training = context.training}, state);
    if (fault_ == Fault::lost_state) state = before;
    if (fault_ == Fault::state_sign) {
      Tensor& leaf = state.writable(0);
      leaf.data()[leaf.count() / 2] *= -1;
    }
    if (fault_ == Fault::future) {
      Tensor leaking = y.value().clone();
      const Index dim = x.extent(2), rows = x.value().count() / dim;
      for (Index r = 0; r + 1 < rows; ++r) leaking.data()[r * dim] += x.value().data()[(r + 1) * dim] / 1000;
      y = Var(leaking);
    }
    if (fault_ == Fault::gradient_sign) {
      y = tape.record(y.value(), {&y}, [dy_in = y.gradient()](Tensor dy) {
        dy = dy.clone();
        dy.data()[dy.count() / 3] *= -1;
        add_gradient(dy_in, dy);
      });
    }
    return y;
  }
  void step(Matrix x, Matrix y, const Context& context, State& state) const override {
    inner_->step(x, y, context, state);
    if (fault_ == Fault::step_sign) y(0, 1) *= -1;
  }
  State initial_state(Index lanes) const override { return inner_->initial_state(lanes); }
  void visit(const ParameterVisitor& visitor) override {
    inner_->visit(visitor);
    shared_.visit(visitor);
  }
  double mixing_cost(Index length) const override { return inner_->mixing_cost(length); }

 private:
  Fault fault_;
  SharedParameters shared_;
  std::unique_ptr<Mixer> inner_;
};

const MixerVariant kVariant{"gsa", 24, 3, {{"slots", "5"}}};

MixerInstance faulty(Fault fault) {
  return MixerInstance(kVariant.dim, std::make_unique<FaultyMixer>(kVariant, fault));
}

constexpr double kCaught = 1e-4;

}  // namespace

TEST_CASE("faults: a sound mixer passes every measure, so that what is caught is the fault") {
  const MixerInstance m = faulty(Fault::none);
  CHECK(split_error(m, 70, 20, true) < kCaught);
  CHECK(step_error(m, 70, true) < kCaught);
  CHECK(causality_error(m, 70, 20) == 0);
  CHECK(isolation_error(m) < kCaught);
  CHECK(padding_error(m) == 0);
}

TEST_CASE("faults: each is caught by the measure that is there for it") {
  CHECK(split_error(faulty(Fault::state_sign), 70, 20, true) > kCaught);
  CHECK(split_error(faulty(Fault::lost_state), 70, 20, true) > kCaught);
  CHECK(step_error(faulty(Fault::step_sign), 70, true) > kCaught);
  CHECK(causality_error(faulty(Fault::future), 70, 20) > 0);
  CHECK(isolation_error(faulty(Fault::deaf_to_documents)) > kCaught);
  CHECK(padding_error(faulty(Fault::reads_padding)) > kCaught);
}

#ifdef QUIPU_DOUBLE
TEST_CASE("faults: one flipped sign in a gradient is caught") {
  CHECK(GradientCheck(faulty(Fault::none), Layout::plain(2, 11)).error() < 1e-6);
  CHECK(GradientCheck(faulty(Fault::gradient_sign), Layout::plain(2, 11)).error() > 1e-6);
}

TEST_CASE("faults: a leaf that should be a constant and is not is caught, and one that is and should not be") {
  CHECK(GradientCheck(faulty(Fault::none), Layout::plain(2, 11), {"hk"}).error() == INFINITY);
  const MixerInstance segments({"transformer_xl", 24, 3, {{"memory", "5"}}, {1, 3}, 7});
  CHECK(GradientCheck(segments, Layout::plain(2, 5), {"cache"}).error() < 1e-6);
  CHECK(GradientCheck(segments, Layout::plain(2, 5)).error() > 1e-6);
  CHECK(GradientCheck(segments, Layout::plain(2, 11), {"cache"}).error() > 1e-6);
}
#endif
