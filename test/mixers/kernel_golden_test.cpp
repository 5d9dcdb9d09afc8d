// Kernel attentions against the published numbers: feature maps, operations and layers.
#include <numbers>

#include "grad/ops_features.h"
#include "grad/ops_linear.h"
#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "grad/ops_rows.h"
#include "mixers/golden_layer.h"
#include "mixers/kernel_memory.h"
#include "scan/golden_op.h"
#include "scan/max_scan.h"

using namespace quipu;

namespace {

/// A random matrix of a case: drawn once, not trained here.
Tensor constant_of(const char* file, const char* name, const char* path) {
  return tensor_of(GoldenFile(file).at(name).tensor(path));
}

/// The state of a kernel memory out of a case: S, z.
State state_of(OpCase& c, Index lanes, const KernelMemory& memory) {
  State state;
  memory.add_state(state, lanes);
  for (StateLeaf& leaf : state.leaves())
    if (const Var start = c.leaf("state0/" + leaf.name); start.defined()) leaf.value = start;
  return state;
}

Outputs outputs(const Var& y, const State& state) { return {y, {{"S", state.real(0)}, {"z", state.real(1)}}}; }

}  // namespace

TEST_CASE("golden: Performer as an operation, streaming") {
  for (const char* name : {"op_streaming_T17", "op_streaming_T64", "op_streaming_state"})
    OpCase("performer", name).check([&](Tape& tape, OpCase& c) -> Outputs {
      const Var q = c.leaf("input/q"), k = c.leaf("input/k"), v = c.leaf("input/v");
      const Tensor projection = constant_of("performer", name, "input/projection");
      const Layout layout = Layout::plain(q.extent(0), q.extent(1));
      const auto feature_scale = static_cast<Real>(std::pow(8, -0.25));
      const KernelMemory memory(2, 16, 8, {});
      State state = state_of(c, layout.batch, memory);
      const MaxScanOutput keys =
          max_scan(tape, positive_exponents(tape, k, projection, feature_scale), c.leaf("state0/m"), layout);
      const Var queries = softmax_rows(tape, linear(tape, q, projection), feature_scale);
      const Var y =
          memory(tape, {.q = queries, .k = keys.features, .v = v, .log_decay = keys.log_decay}, layout, state);
      Outputs out = outputs(y, state);
      out.second["m"] = keys.state;
      return out;
    });
}

// The published operation takes its keys' maximum over the whole sequence and adds 1e-4 to every feature: here as plain
// features into the same memory. Its gradients hold the maximum constant and are no gradients of anything.
TEST_CASE("golden: Performer as published, outputs") {
  for (const char* name : {"op_upstream_T17", "op_upstream_T64"}) {
    INFO(name);
    const GoldenCase golden = GoldenFile("performer").at(name);
    Tape tape(false);
    const Tensor projection = tensor_of(golden.tensor("input/projection")), v = tensor_of(golden.tensor("input/v"));
    const Index batch = v.extent(0), length = v.extent(1), heads = 2, features = 16;
    const auto c = static_cast<Real>(std::pow(8, -0.25));
    const auto published = [&](const std::string& path, bool query) {
      const Tensor x = tensor_of(golden.tensor(path));
      const Tensor u = linear(tape, scale(tape, x, c), projection).value();
      const Tensor phi = positive_exponents(tape, x, projection, c).value().clone();
      const auto row = [&](Index b, Index t, Index h) { return ((b * length + t) * heads + h) * features; };
      for (Index b = 0; b < batch; ++b)
        for (Index h = 0; h < heads; ++h)
          for (Index t = 0; t < length; ++t) {
            Real top = -INFINITY;
            for (Index s = query ? t : 0; s < (query ? t + 1 : length); ++s)
              for (Index m = 0; m < features; ++m) top = std::max(top, u.data()[row(b, s, h) + m]);
            for (Index m = 0; m < features; ++m) {
              Real& value = phi.data()[row(b, t, h) + m];
              value = (std::exp(value - top) + static_cast<Real>(1e-4)) / 4;
            }
          }
      return phi;
    };
    const Tensor q = published("input/q", true), k = published("input/k", false);
    OuterScanInput in{.q = q, .k = k, .v = v, .normaliser = true};
    in.z = Tensor::full({batch, heads, features}, static_cast<Real>(1e-6));
    in.state = Tensor::zeros({batch, heads, features, 8});
    const OuterScanOutput out = outer_scan(tape, in, Layout::plain(batch, length));
    const Tensor y = quotient(tape, out.y, out.denominator, Divisor{}).value();
    CHECK(relative_error(y, golden.tensor("output")) < kOutputTolerance);
  }
}

TEST_CASE("golden: positive features of both signs, and random Fourier features") {
  const auto c = static_cast<Real>(std::pow(8, -0.25));
  const auto directions = [](const char* name, bool signs) {
    const Tensor omega = constant_of("performer", name, "input/omega");
    const Index width = omega.extent(0), draws = omega.extent(1);
    Tensor rows({signs ? 2 * draws : draws, width});
    for (Index r = 0; r < rows.extent(0); ++r)
      for (Index k = 0; k < width; ++k)
        rows.data()[r * width + k] = (r < draws ? 1 : -1) * omega.data()[k * draws + r % draws];
    return rows;
  };
  OpCase("performer", "favor_feature_map").check([&](Tape& tape, OpCase& g) -> Outputs {
    const Tensor rows = directions("favor_feature_map", true);
    const Var u = positive_exponents(tape, g.leaf("input/x"), rows, c);
    return {scale(tape, activate(tape, u, Activation::exp), Real{0.25}), {}};
  });
  OpCase("performer", "rff_feature_map").check([&](Tape& tape, OpCase& g) -> Outputs {
    const Tensor rows = directions("rff_feature_map", false);
    const Var u = linear(tape, scale(tape, g.leaf("input/x"), c), rows);
    const Var shifted = sine_cosine(
        tape, add(tape, scale(tape, u, -1), Tensor::full(u.shape(), static_cast<Real>(std::numbers::pi / 2))),
        static_cast<Real>(std::sqrt(2.0 / 16)));
    return {shifted, {}};
  });
}

TEST_CASE("golden: random feature attention as an operation, with and without gate") {
  for (const char* name : {"op_paper_T17", "op_paper_gated_T17", "op_paper_gated_state"})
    OpCase("rfa", name).check([&](Tape& tape, OpCase& c) -> Outputs {
      const Var v = c.leaf("input/v"), logit = c.leaf("input/gate_logit");
      const Tensor directions = constant_of("rfa", name, "input/random_matrices");
      const auto features = [&](const char* path) {
        const Var n = unit_rows(tape, c.leaf(path), {}, 0);
        return sine_cosine(tape, linear_heads(tape, n, directions), static_cast<Real>(1 / std::sqrt(32.0)));
      };
      const KernelMemory memory(2, 64, 8, {.least = 1e-6, .bound = Divisor::Bound::signed_});
      State state = state_of(c, v.extent(0), memory);
      KernelMemory::Input in{.q = features("input/q"), .k = features("input/k"), .v = v};
      if (logit.defined()) {
        in.log_decay = activate(tape, logit, Activation::log_sigmoid);
        in.k = scale_rows(tape, in.k, activate(tape, scale(tape, logit, -1), Activation::sigmoid));
      }
      const Var y = memory(tape, in, Layout::plain(v.extent(0), v.extent(1)), state);
      return outputs(y, state);
    });
}

TEST_CASE("golden: random feature attention as published, both of its paths") {
  const std::map<std::string, PublishedName> names{{"o_proj.weight", {"out_proj.weight"}},
                                                   {"o_proj.bias", {"out_proj.bias"}}};
  for (const auto& [name, variant] :
       {std::pair{"layer_clamp_T17", "code"}, {"layer_clamp_T64", "code"}, {"layer_masked_T17", "masked"}})
    check_layer(
        "rfa", name, "rfa",
        {.options = {{"variant", variant}}, .names = names, .buffers = {{"random_matrices", "input/random_matrices"}}});
}

TEST_CASE("golden: a learned feature map as an operation") {
  for (const char* name : {"op_T17", "op_T64", "op_state"})
    OpCase("t2r", name).check([](Tape& tape, OpCase& c) -> Outputs {
      const Var v = c.leaf("input/v");
      const auto features = [&](const std::string& which) {
        const Var u =
            linear_heads(tape, c.leaf("input/" + which), c.leaf("param/W" + which), c.leaf("param/b" + which));
        return activate(tape, u, Activation::relu);
      };
      const KernelMemory memory(2, 16, 8, {.eps = 1e-6});
      State state = state_of(c, v.extent(0), memory);
      const Var y = memory(tape, {.q = features("q"), .k = features("k"), .v = v},
                           Layout::plain(v.extent(0), v.extent(1)), state);
      return outputs(y, state);
    });
}

TEST_CASE("golden: Transformer-to-RNN as published, with and without input gate") {
  std::map<std::string, PublishedName> names{{"feature_map.weight", {"fc3.weight"}},
                                             {"feature_map.bias", {"fc3.bias"}}};
  for (const char* part : {"q_proj", "k_proj", "v_proj", "g_proj"})
    for (const char* kind : {".weight", ".bias"})
      names[std::string(part) + kind] = {"attn." + std::string(part) + kind};
  for (const char* kind : {".weight", ".bias"})
    names[std::string("o_proj") + kind] = {"attn.out_proj" + std::string(kind)};
  check_layer("t2r", "upstream_layer_T17", "t2r", {.names = names});
  check_layer("t2r", "upstream_layer_input_gate_T64", "t2r", {.options = {{"input_gate", "true"}}, .names = names});
}
