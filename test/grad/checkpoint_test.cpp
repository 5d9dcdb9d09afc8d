#include "grad/checkpoint.h"

#include "grad/ops_norm.h"
#include "grad/ops_pointwise.h"
#include "op_checks.h"
#include "tensor/arena.h"

namespace quipu {
namespace {

using Vars = std::vector<Var>;

/// Two outputs and an undefined one, with dropout and a parameter.
Vars layer(Tape& tape, const Vars& v) {
  const Var normal = layer_norm(tape, v[0], v[1], {}, 1e-5);
  const Var a = dropout(tape, activate(tape, normal, Activation::gelu), 0.2, Rng(1, 2, 3));
  return {add(tape, a, v[0]), Var(), softmax_rows(tape, multiply(tape, a, v[0]), 2)};
}

Vars defined_outputs(const Vars& ys) { return {ys[0], ys[2]}; }

std::vector<Tensor> layer_inputs() { return {random_tensor({4, 9}, 1), random_tensor({9}, 2)}; }

}  // namespace

TEST_CASE("checkpointed outputs and gradients are bit-identical to plain ones") {
  const auto plain =
      outputs_then_gradients([](Tape& t, const Vars& v) { return defined_outputs(layer(t, v)); }, layer_inputs());
  const auto kept = outputs_then_gradients(
      [](Tape& t, const Vars& v) { return defined_outputs(checkpoint(t, v, layer)); }, layer_inputs());
  const auto nested = outputs_then_gradients(
      [](Tape& t, const Vars& v) {
        return defined_outputs(checkpoint(t, v, [](Tape& u, const Vars& w) { return checkpoint(u, w, layer); }));
      },
      layer_inputs());
  REQUIRE(kept.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(same_bits(plain[i], kept[i]));
    CHECK(same_bits(plain[i], nested[i]));
  }
}

TEST_CASE("one output's gradient is enough, undefined outputs stay so, and parameters outside the inputs get theirs") {
  const Var outside = Var::leaf(random_tensor({4, 9}, 5));
  const auto fn = [&](Tape& t, const Vars& v) {
    Vars ys = layer(t, v);
    ys[0] = multiply(t, ys[0], outside);
    return ys;
  };
  Tape tape(true);
  const auto inputs = layer_inputs();
  const Var x = Var::leaf(inputs[0]);
  const Vars ys = checkpoint(tape, {x, inputs[1]}, fn);
  CHECK_FALSE(ys[1].defined());
  CHECK(tape.size() == 1);
  tape.backward(ys[0], random_tensor({4, 9}, 6));
  CHECK(outside.gradient()->sum().defined());

  Tape plain(true);
  const Var x_plain = Var::leaf(inputs[0]);
  const Var outside_gradient(outside.value(), std::make_shared<Gradient>(outside.shape()));
  Vars direct = layer(plain, {x_plain, inputs[1]});
  plain.backward(multiply(plain, direct[0], outside_gradient), random_tensor({4, 9}, 6));
  CHECK(same_bits(x.gradient()->sum(), x_plain.gradient()->sum()));
  CHECK(same_bits(outside.gradient()->sum(), outside_gradient.gradient()->sum()));
}

TEST_CASE("checkpointed slices of rows: the same rows, and gradients to rounding") {
  // 2,100 rows: two slices and part of a third.
  const Var factors = Var::leaf(random_tensor({9}, 7));
  const auto fn = [](const Var& by) {
    return [by](Tape& t, const Var& x) { return activate(t, layer_norm(t, x, by, {}, 1e-5), Activation::gelu); };
  };
  const Tensor x = random_tensor({3, 700, 9}, 8), dy = random_tensor({3, 700, 9}, 9);
  for (const bool wanted : {true, false}) {
    const Var kept = wanted ? Var::leaf(x) : Var(x), sliced = wanted ? Var::leaf(x) : Var(x);
    const Var by = Var::leaf(factors.value()), by_sliced = Var::leaf(factors.value());
    Tape plain(true), tape(true);
    const Var y = fn(by)(plain, kept), z = checkpoint_rows(tape, sliced, fn(by_sliced));
    CHECK(tape.size() == 1);
    CHECK(same_bits(y.value(), z.value()));
    const Tensor seed = dy.clone();
    plain.backward(y, dy);
    tape.backward(z, seed);
    CHECK(same_bits(seed, dy));  // it was somebody else's too
    if (wanted) CHECK(same_bits(kept.gradient()->sum(), sliced.gradient()->sum()));
    CHECK(relative_error(by_sliced.gradient()->sum(), by.gradient()->sum()) < 1e-5);
  }
}

TEST_CASE("nothing in between is kept until the backward pass") {
  const auto deep = [](Tape& t, const Vars& v) {
    Var x = v[0];
    for (int i = 0; i < 20; ++i) x = activate(t, x, Activation::tanh);
    return Vars{x};
  };
  const Var x = Var::leaf(random_tensor({10000}, 1));
  const std::size_t before = arena::usage().in_use;
  Tape tape(true);
  const Vars y = checkpoint(tape, {x}, deep);
  CHECK(arena::usage().in_use - before <= 2 * 10000 * sizeof(Real));
  Tape plain(true);
  const Vars z = deep(plain, {x});
  CHECK(arena::usage().in_use - before >= 20 * 10000 * sizeof(Real));
}

TEST_CASE("without recording, a checkpoint is the function itself") {
  Tape tape(false);
  const auto inputs = layer_inputs();
  const Vars ys = checkpoint(tape, {inputs[0], inputs[1]}, layer);
  CHECK(same_bits(ys[0].value(), layer(tape, {inputs[0], inputs[1]})[0].value()));
  CHECK_FALSE(ys[0].wants_gradient());
}

}  // namespace quipu
