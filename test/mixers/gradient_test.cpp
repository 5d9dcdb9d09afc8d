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
    if (const auto constants = constant_leaves(variant); !constants.empty()) {
      // What a closing segment leaves behind is a constant: up to the end of the one that the 9 tokens before opened.
      const Index most = std::min(length, variant.length - 9 % variant.length);
      CHECK(GradientCheck(m, Layout::plain(2, most), constants).error() < 1e-6);
      if (most > 2) CHECK(GradientCheck(m, Layout{2, most, {most, most - 1}, {{2}, {}}}, constants).error() < 1e-6);
      continue;
    }
    CHECK(GradientCheck(m, Layout::plain(2, 11)).error() < 1e-6);
    CHECK(GradientCheck(m, Layout{2, length, {length, length - 5}, {{3, 40}, {}}}).error() < 1e-6);
  }
}
#endif
