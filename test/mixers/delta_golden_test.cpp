// Published layers of the delta rules: DeltaNet, Gated DeltaNet.
#include "grad/ops_linear.h"
#include "mixers/golden_layer.h"

using namespace quipu;

namespace {

/// A published convolution holds its last 4 inputs, [B,C,4]; ours the 3 that it needs, [B,3,C].
GoldenTensor newest_inputs(const GoldenTensor& x) {
  const Index lanes = x.shape[0], channels = x.shape[1], held = x.shape[2];
  GoldenTensor y{{lanes, held - 1, channels}, {}};
  for (Index b = 0; b < lanes; ++b)
    for (Index w = 1; w < held; ++w)
      for (Index c = 0; c < channels; ++c)
        y.values.push_back(x.values[static_cast<std::size_t>((b * channels + c) * held + w)]);
  return y;
}

/// The oldest of the 4 inputs is the projection of the fourth last token.
std::vector<std::pair<Var, Tensor>> oldest_inputs(Tape& tape, const Var& x, const GoldenCase& golden,
                                                  const MixerInstance& m) {
  std::vector<std::pair<Var, Tensor>> outputs;
  const Index batch = x.extent(0), length = x.extent(1);
  for (const char* name : {"q", "k", "v"})
    for (const auto& entry : m.parameters->trainable()) {
      if (entry.name != std::string(name) + "_proj.weight") continue;
      const GoldenTensor held = golden.tensor(std::string("cotangent_state/conv_") + name);
      const Var y = linear(tape, x, entry.parameter->var());
      const Index channels = y.extent(2);
      const Tensor cotangent = Tensor::zeros(y.shape());
      for (Index b = 0; b < batch; ++b)
        for (Index c = 0; c < channels; ++c)
          cotangent.data()[(b * length + length - 4) * channels + c] =
              static_cast<Real>(held.values[static_cast<std::size_t>((b * channels + c) * 4)]);
      outputs.emplace_back(y, cotangent);
    }
  REQUIRE(outputs.size() == 3);
  return outputs;
}

const std::map<std::string, PublishedLeaf> kConvolutions{{"conv_q", {"conv_q", newest_inputs}},
                                                         {"conv_k", {"conv_k", newest_inputs}},
                                                         {"conv_v", {"conv_v", newest_inputs}}};

}  // namespace

TEST_CASE("golden: DeltaNet") {
  for (const char* name : {"layer_T17", "layer_state"})
    check_layer("deltanet", name, "deltanet", {.leaves = kConvolutions, .more_outputs = oldest_inputs});
  check_layer("deltanet", "layer_noconv_T64", "deltanet",
              {.options = {{"use_short_conv", "false"}, {"conv_size", "4"}, {"use_gate", "true"}}});
}

TEST_CASE("golden: Gated DeltaNet, with more heads of values than of keys too") {
  for (const char* name : {"layer_T17", "layer_T64", "layer_state_gva"})
    check_layer("gated_deltanet", name, "gated_deltanet", {.leaves = kConvolutions, .more_outputs = oldest_inputs});
}
