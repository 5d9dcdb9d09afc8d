// The invariants that every mixer of the registry keeps, whatever it computes.
#include <doctest/doctest.h>

#include <functional>

#include "mixers/measures.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kSame = 1e-10, kRounding = 1e-14;
#else
constexpr double kSame = 1e-4, kRounding = 1e-6;
#endif
// kRounding: a strong decay cuts a chunk's products elsewhere, and a row's sums may run in another order.

void for_each_variant(const std::function<void(const MixerInstance&)>& check) {
  for (const MixerVariant& variant : mixer_variants()) {
    INFO(describe(variant));
    check(MixerInstance(variant));
  }
}

// Around the convolutions (4), the small chunks (half of the outer scan's) and the large ones.
const std::vector<Index> kLengths{
    1, 2, 3, 4, 5, 7, kOuterChunk / 2 + 1, kOuterChunk - 1, kOuterChunk, kOuterChunk + 1, 2 * kOuterChunk + 5};

}  // namespace

TEST_CASE("mixers: any two pieces give what one piece gives, outputs and state") {
  for_each_variant([](const MixerInstance& m) {
    for (const bool used : {false, true})
      for (const Index length : kLengths)
        for (const Index cut : {Index{1}, length / 3, length / 2, length - 1}) {
          CAPTURE(length);
          CAPTURE(cut);
          CAPTURE(used);
          if (cut >= 1 && cut < length) CHECK(split_error(m, length, cut, used) < kSame);
        }
  });
}

TEST_CASE("mixers: the recurrent step gives what the parallel form gives") {
  for_each_variant([](const MixerInstance& m) {
    for (const bool used : {false, true})
      for (const Index length : kLengths) {
        CAPTURE(length);
        CAPTURE(used);
        CHECK(step_error(m, length, used) < kSame);
      }
  });
}

TEST_CASE("mixers: a token changes nothing before it") {
  for_each_variant([](const MixerInstance& m) {
    const Index length = kOuterChunk + 9;
    for (const Index changed : {Index{1}, Index{20}, kOuterChunk, length - 1})
      CHECK(causality_error(m, length, changed) < kRounding);
  });
}

TEST_CASE("mixers: documents, padding and lanes do not see each other") {
  for_each_variant([](const MixerInstance& m) {
    CHECK(isolation_error(m) < kSame);
    CHECK(padding_error(m) == 0);
  });
}

TEST_CASE("mixers: gradients of padding and of other documents vanish") {
  for_each_variant([](const MixerInstance& m) {
    const Index length = kOuterChunk + 9;
    const Layout layout{1, length, {length - 4}, {{30}}};
    const Var x = Var::leaf(random_tensor({1, length, m.dim}, 6));
    State state = m.used_state(1);
    for (StateLeaf& leaf : state.leaves())
      if (!leaf.is_integer()) leaf.value = Var::leaf(leaf.value.value());
    const State start = state;
    Tape tape(true);
    const Var y = m.mixer->forward(tape, x, {.layout = layout}, state);
    Tensor seed = Tensor::zeros(y.shape());
    for (Index t = 30; t < length - 4; ++t)
      for (Index c = 0; c < m.dim; ++c) seed.data()[t * m.dim + c] = static_cast<Real>(t % 7 + 2) / 10;
    tape.backward(y, seed);
    const Tensor& dx = x.gradient()->sum();
    const auto largest = [&](Index begin, Index end) {
      Real top = 0;
      for (Index i = begin * m.dim; i < end * m.dim; ++i) top = std::max(top, std::abs(dx.data()[i]));
      return top;
    };
    CHECK(largest(0, 30) == 0);
    CHECK(largest(length - 4, length) == 0);
    CHECK(largest(30, length - 4) > 0);
    for (const StateLeaf& leaf : start.leaves())
      if (!leaf.is_integer() && !leaf.value.gradient()->empty())
        for (const Real g : leaf.value.gradient()->sum().span()) CHECK(g == 0);
  });
}

TEST_CASE("mixers: a batch equals its lanes run alone") {
  for_each_variant([](const MixerInstance& m) {
    const Tensor x = random_tensor({3, 37, m.dim}, 7);
    const State start = m.used_state(3);
    State together = start;
    const Tensor y = m.forward(x, together);
    for (Index b = 0; b < 3; ++b) {
      const std::vector<Index> lane{b};
      State alone = start.gather(lane);
      CHECK(relative_error(m.forward(lane_of(x, b), alone), lane_of(y, b)) < kSame);
      CHECK(state_error(together.gather(lane), alone) < kSame);
    }
  });
}

TEST_CASE("mixers: the size of the state is what it says, and fixed where it says so") {
  for_each_variant([](const MixerInstance& m) {
    for (const Index length : {Index{0}, Index{1}, Index{100}, Index{300}}) {
      State state = m.mixer->initial_state(1);
      if (length > 0) m.forward(random_tensor({1, length, m.dim}, 8), state);
      CHECK(state.bytes() - m.mixer->spare_bytes(state) == m.mixer->state_bytes(length));
      if (m.mixer->memory() == Memory::fixed) CHECK(state.bytes() == m.mixer->state_bytes(1000000));
    }
    CHECK(m.mixer->mixing_cost(1000) >= 0);
  });
}

TEST_CASE("mixers: a reset lane is as new, the others go on") {
  for_each_variant([](const MixerInstance& m) {
    State state = m.used_state(2);
    const std::vector<Index> first{0}, second{1};
    const State before = state.gather(second);
    m.mixer->reset(state, 0);
    const Tensor x = random_tensor({2, 6, m.dim}, 9);
    State fresh = m.mixer->initial_state(1), other = before;
    const Tensor y = m.steps(x, state);
    CHECK(relative_error(lane_of(y, 0), m.steps(lane_of(x, 0), fresh)) < kSame);
    CHECK(relative_error(lane_of(y, 1), m.steps(lane_of(x, 1), other)) < kSame);
  });
}

TEST_CASE("mixers: large inputs and long streams stay finite") {
  for_each_variant([](const MixerInstance& m) {
    State state = m.mixer->initial_state(1);
    const Tensor large = random_tensor({1, 90, m.dim}, 10, 1000);
    const Tensor y = m.forward(large, state);
    for (const Real value : y.span()) REQUIRE(std::isfinite(value));
    Tensor equal({1, 90, m.dim});
    std::fill(equal.span().begin(), equal.span().end(), Real{1});
    const Tensor z = m.forward(equal, state);
    for (const Real value : z.span()) REQUIRE(std::isfinite(value));
  });
}
