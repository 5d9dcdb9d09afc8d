// Mamba's layers: their convolution's state is published with one input more than it needs, Mamba-2's state as
// [B,H,P,N].
#include "mixers/golden_layer.h"
#include "scan/outer_scan.h"

using namespace quipu;

namespace {

/// [B,H,P,N] -> [B,H,N,P].
GoldenTensor turned(const GoldenTensor& s) {
  const Index heads = s.shape[0] * s.shape[1], rows = s.shape[2], cols = s.shape[3];
  GoldenTensor t{{s.shape[0], s.shape[1], cols, rows}, {}};
  for (Index h = 0; h < heads; ++h)
    for (Index c = 0; c < cols; ++c)
      for (Index r = 0; r < rows; ++r)
        t.values.push_back(s.values[static_cast<std::size_t>((h * rows + r) * cols + c)]);
  return t;
}

}  // namespace

TEST_CASE("golden: Mamba") {
  for (const char* name : {"layer_T17", "layer_T64", "layer_state"})
    check_layer("mamba", name, "mamba", {.convolutions = {{"conv", {"conv", "in_proj.weight", 0}}}});
}

TEST_CASE("golden: Mamba-2") {
  for (const char* name : {"layer_T17", "layer_T64_groups2", "layer_state"})
    check_layer("mamba2", name, "mamba2",
                {.leaves = {{"ssm", {"ssm", turned}}}, .convolutions = {{"conv", {"conv", "in_proj.weight", 16}}}});
}

TEST_CASE("golden: Mamba-2's state space is an outer scan") {
  const GoldenCase golden = GoldenFile("mamba2").at("ssd_op_state");
  for (const std::string group : {"grad/", "grad_with_state/"}) {
    const auto leaf = [&](const char* name) { return Var::leaf(tensor_of(golden.tensor(name))); };
    const Var c = leaf("input/C"), b = leaf("input/B"), x = leaf("input/X"), a = leaf("input/A");
    const Var s = Var::leaf(tensor_of(turned(golden.tensor("state0/S"))));
    Tape tape(true);
    const OuterScanOutput out =
        outer_scan(tape, {.decay = Decay::scalar, .q = c, .k = b, .v = x, .log_decay = a, .state = s},
                   Layout::plain(x.extent(0), x.extent(1)));
    CHECK(relative_error(out.y.value(), golden.tensor("output")) < kOutputTolerance);
    CHECK(relative_error(out.state.value(), turned(golden.tensor("final_state/S"))) < kOutputTolerance);
    std::vector<std::pair<Var, Tensor>> seeds{{out.y, tensor_of(golden.tensor("cotangent"))}};
    if (group != "grad/") seeds.emplace_back(out.state, tensor_of(turned(golden.tensor("cotangent_state/S"))));
    tape.backward(seeds);
    for (const auto& [name, var] : {std::pair{"input/C", &c}, {"input/B", &b}, {"input/X", &x}, {"input/A", &a}}) {
      CAPTURE(name);
      CHECK(relative_error(var->gradient()->sum(), golden.tensor(group + name)) < kGradientTolerance);
    }
    CHECK(relative_error(s.gradient()->sum(), turned(golden.tensor(group + "state0/S"))) < kGradientTolerance);
  }
}
