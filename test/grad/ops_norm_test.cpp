#include "grad/ops_norm.h"

#include "grad/ops_pointwise.h"
#include "op_checks.h"

namespace quipu {
namespace {

double eps_of(const GoldenCase& golden) { return golden.number("eps"); }

/// Each of the norms as an operation on {x, weight, bias} or {x, gate, weight}, for x [B,T,G,V], weight [G*V].
struct NamedOperation {
  std::string name;
  Operation op;
};

std::vector<NamedOperation> all_norms() {
  using Vars = std::vector<Var>;
  return {
      {"layer", [](Tape& t, const Vars& v) { return Vars{layer_norm(t, v[0], v[1], v[2], 1e-2)}; }},
      {"rms", [](Tape& t, const Vars& v) { return Vars{rms_norm(t, v[0], v[1], 1e-2)}; }},
      {"l2", [](Tape& t, const Vars& v) { return Vars{l2_norm(t, v[0], 1e-2)}; }},
      {"group", [](Tape& t, const Vars& v) { return Vars{group_norm(t, v[0], 1, {}, {}, 1e-2)}; }},
      {"gated", [](Tape& t, const Vars& v) { return Vars{rms_norm_gated(t, v[0], v[3], v[1], 1e-2)}; }},
      {"softmax", [](Tape& t, const Vars& v) { return Vars{softmax_rows(t, v[0], Real{0.75})}; }},
  };
}

std::vector<Tensor> norm_inputs(Index batch, Index time, Index groups, Index width) {
  const Shape shape{batch, time, groups, width};
  return {random_tensor(shape, 1, 2), random_tensor({groups * width}, 2), random_tensor({groups * width}, 3),
          random_tensor(shape, 4)};
}

}  // namespace

TEST_CASE("norms equal the golden files") {
  const GoldenFile file("norms");
  std::size_t checked = 0;
  const auto check = [&](const char* name, const std::function<Var(Tape&, const NamedVars&, const GoldenCase&)>& op) {
    const GoldenCase golden = file.at(name);
    check_golden(golden, [&](Tape& tape, const NamedVars& vars) { return op(tape, vars, golden); });
    ++checked;
  };
  check("layer_norm", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return layer_norm(tape, v.at("input/x"), v.at("param/weight"), v.at("param/bias"), eps_of(golden));
  });
  check("layer_norm_no_affine", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return layer_norm(tape, v.at("input/x"), {}, {}, eps_of(golden));
  });
  const auto rms = [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return rms_norm(tape, v.at("input/x"), v.at("param/weight"), eps_of(golden));
  };
  check("rms_norm", rms);
  check("rms_norm_eps_visible", rms);
  check("l2norm_fla", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return l2_norm(tape, v.at("input/x"), eps_of(golden));
  });
  check("group_norm_last_dim", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return group_norm(tape, v.at("input/x"), static_cast<Index>(golden.number("groups")), v.at("param/weight"),
                      v.at("param/bias"), eps_of(golden));
  });
  check("gated_rms_norm_swish", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return rms_norm_gated(tape, v.at("input/x"), v.at("input/gate"), v.at("param/weight"), eps_of(golden));
  });
  check("rms_norm_of_gated", [](Tape& tape, const NamedVars& v, const GoldenCase& golden) {
    return rms_norm(tape, gated(tape, v.at("input/gate"), v.at("input/x"), Activation::silu), v.at("param/weight"),
                    eps_of(golden));
  });
  CHECK(checked == file.cases().size());
}

TEST_CASE("gradients of norms equal finite differences at every width") {
  for (const auto& [name, op] : all_norms()) {
    INFO(name);
    for (const Index width : {1, 5, 8, 9, 17}) {
      CAPTURE(width);
      check_gradients(op, norm_inputs(2, 3, 3, width));
    }
  }
}

TEST_CASE("norms do not depend on the number of threads") {
  for (const auto& [name, op] : all_norms()) {
    INFO(name);
    check_threads(op, norm_inputs(3, 67, 2, 9));
  }
}

TEST_CASE("a weight of G*V elements is a weight for each group of a token") {
  const auto inputs = norm_inputs(2, 3, 3, 5);
  Tape tape(false);
  const Tensor y = rms_norm(tape, inputs[0], inputs[1], 1e-3).value();
  const Tensor plain = rms_norm(tape, inputs[0], {}, 1e-3).value();
  for (Index i = 0; i < y.count(); ++i)
    CHECK(y.data()[i] == doctest::Approx(static_cast<double>(plain.data()[i] * inputs[1].data()[i % 15])));
}

TEST_CASE("weight gradients add to what a bound slice holds") {
  const auto inputs = norm_inputs(2, 40, 2, 6);
  Tape tape(true);
  const Tensor flat = Tensor::full({30}, 100);
  const Var weight(inputs[1], Gradient::bound(flat.part(6, {12})));
  const Var y = rms_norm(tape, inputs[0], weight, 1e-3);
  tape.backward(y, inputs[3]);
  const auto reference = outputs_then_gradients(
      [](Tape& t, const std::vector<Var>& v) { return std::vector<Var>{rms_norm(t, v[0], v[1], 1e-3)}; },
      {inputs[0], inputs[1]});
  CHECK(flat.data()[5] == 100);
  CHECK(flat.data()[18] == 100);
  Tape again(true);
  const Var leaf = Var::leaf(inputs[1]);
  again.backward(rms_norm(again, inputs[0], leaf, 1e-3), inputs[3]);
  for (Index i = 0; i < 12; ++i)
    CHECK(flat.data()[6 + i] == doctest::Approx(100.0 + static_cast<double>(leaf.gradient()->sum().data()[i])));
  CHECK(reference.size() == 3);
}

TEST_CASE("the forms for one step equal those on the tape, in place too") {
  const auto inputs = norm_inputs(2, 1, 3, 8);
  Tape tape(false);
  Tensor y = inputs[0].clone();
  layer_norm_into(y.view(), y.view(), inputs[1], inputs[2], 1e-4);
  CHECK(same_bits(y, layer_norm(tape, inputs[0], inputs[1], inputs[2], 1e-4).value()));
  rms_norm_into(y.view(), inputs[0].view(), inputs[1], 1e-4);
  CHECK(same_bits(y, rms_norm(tape, inputs[0], inputs[1], 1e-4).value()));
  l2_norm_into(y.view(), inputs[0].view(), 1e-4);
  CHECK(same_bits(y, l2_norm(tape, inputs[0], 1e-4).value()));
  rms_norm_gated_into(y.view(), inputs[0].view(), inputs[3].view(), inputs[1], 1e-4);
  CHECK(same_bits(y, rms_norm_gated(tape, inputs[0], inputs[3], inputs[1], 1e-4).value()));
  const Tensor flat = inputs[0].reshaped({2, 24});
  Tensor z(flat.shape());
  group_norm_into(z.view(), flat.view(), 3, inputs[1], inputs[2], 1e-4);
  CHECK(same_bits(z, group_norm(tape, flat, 3, inputs[1], inputs[2], 1e-4).value()));
}

TEST_CASE("a NaN makes its whole row NaN, and no other") {
  for (const auto& [name, op] : all_norms()) {
    INFO(name);
    auto inputs = norm_inputs(1, 3, 2, 11);
    inputs[0].data()[2 * 11 + 4] = NAN;
    const std::vector<Var> vars(inputs.begin(), inputs.end());
    Tape tape(false);
    const Tensor y = op(tape, vars)[0].value();
    for (Index i = 0; i < y.count(); ++i) CHECK(std::isnan(y.data()[i]) == (i / 11 == 2));
  }
}

TEST_CASE("layer norm of a large mean keeps the spread") {
  Tensor x({1, 64});
  for (Index i = 0; i < 64; ++i) x.data()[i] = static_cast<Real>(1000 + (i % 2 == 0 ? 0.5 : -0.5));
  Tape tape(false);
  const Tensor y = layer_norm(tape, x, {}, {}, 1e-12).value();
  for (Index i = 0; i < 64; ++i) CHECK(y.data()[i] == doctest::Approx(i % 2 == 0 ? 1.0 : -1.0).epsilon(1e-5));
}

TEST_CASE("norms refuse weights that do not fit") {
  Tape tape(false);
  const Tensor x = random_tensor({2, 3, 4}, 1);
  CHECK_THROWS_AS(rms_norm(tape, x, random_tensor({5}, 2), 1e-5), ShapeError);
  CHECK_THROWS_AS(layer_norm(tape, x, random_tensor({4}, 2), random_tensor({12}, 3), 1e-5), ShapeError);
  CHECK_THROWS_AS(group_norm(tape, x, 3, {}, {}, 1e-5), ShapeError);
  CHECK_THROWS_AS(rms_norm_gated(tape, x, random_tensor({2, 3, 5}, 2), {}, 1e-5), ShapeError);
}

}  // namespace quipu
