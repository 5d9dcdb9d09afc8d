// Gradients of every mixer of the registry against finite differences: inputs, states and parameters.
#include <doctest/doctest.h>

#include "mixers/measures.h"

using namespace quipu;

#ifdef QUIPU_DOUBLE
TEST_CASE("mixers: gradients agree with finite differences") {
  const Index length = kOuterChunk + 9;
  for (const MixerVariant& variant : mixer_variants()) {
    INFO(describe(variant));
    const MixerInstance m(variant);
    CHECK(GradientCheck(m, Layout::plain(2, 11)).error() < 1e-6);
    CHECK(GradientCheck(m, Layout{2, length, {length, length - 5}, {{3, 40}, {}}}).error() < 1e-6);
  }
}
#endif
