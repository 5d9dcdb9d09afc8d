#include "grad/ops_pointwise.h"

#include "op_checks.h"

namespace quipu {
namespace {

using Vars = std::vector<Var>;

Operation activation_op(Activation activation) {
  return [=](Tape& tape, const Vars& v) { return Vars{activate(tape, v[0], activation)}; };
}

Operation gated_op(Activation activation) {
  return [=](Tape& tape, const Vars& v) { return Vars{gated(tape, v[0], v[1], activation)}; };
}

/// Sums, products and a gate that use one value several times.
Vars mixture(Tape& tape, const Vars& v) {
  const Var s = add(tape, v[0], v[1]);
  const Var p = multiply(tape, s, v[0]);
  return {add(tape, scale(tape, p, Real{-0.5}), s), gated(tape, p, p, Activation::silu)};
}

constexpr Index kLarge = 3 * 16384 + 5;

}  // namespace

TEST_CASE("gradients of pointwise operations equal finite differences") {
  const std::vector<Tensor> inputs = {random_tensor({3, 23}, 1, 2), random_tensor({3, 23}, 2, 2)};
  for (const Activation activation : kActivations) {
    INFO(activation_name(activation));
    check_gradients(activation_op(activation), {inputs[0]});
    check_gradients(gated_op(activation), inputs);
  }
  check_gradients(mixture, inputs);
  check_gradients([](Tape& t, const Vars& v) { return Vars{dropout(t, v[0], 0.3, Rng(1, 2, 3))}; }, {inputs[0]});
}

TEST_CASE("pointwise operations do not depend on the number of threads") {
  const std::vector<Tensor> inputs = {random_tensor({kLarge}, 1), random_tensor({kLarge}, 2)};
  for (const Activation activation : {Activation::gelu, Activation::silu, Activation::log_sigmoid}) {
    check_threads(activation_op(activation), {inputs[0]});
    check_threads(gated_op(activation), inputs);
  }
  check_threads(mixture, inputs);
  check_threads([](Tape& t, const Vars& v) { return Vars{dropout(t, v[0], 0.3, Rng(1, 2, 3))}; }, {inputs[0]});
}

TEST_CASE("gradients of one input alone") {
  const Tensor a = random_tensor({7}, 1);
  const Tensor b = random_tensor({7}, 2);
  Tape tape(true);
  const Var x = Var::leaf(a);
  tape.backward(multiply(tape, x, b), Tensor::full({7}, 1));
  CHECK(same_bits(x.gradient()->sum(), b));
  const Var z = Var::leaf(a);
  tape.backward(gated(tape, b, z, Activation::relu), Tensor::full({7}, 1));
  for (Index i = 0; i < 7; ++i) CHECK(z.gradient()->sum().data()[i] == std::max(b.data()[i], Real{0}));
}

TEST_CASE("dropout keeps a share 1 - p, scaled, and the gradient has the same mask") {
  Tape tape(true);
  const Var x = Var::leaf(Tensor::full({kLarge}, 1));
  const Var y = dropout(tape, x, 0.25, Rng(3, 1, 4));
  Index kept = 0;
  for (const Real v : y.value().span()) {
    const bool valid = v == 0 || std::abs(v - Real{4} / 3) < 1e-6;
    REQUIRE(valid);
    if (v != 0) ++kept;
  }
  CHECK(static_cast<double>(kept) / kLarge == doctest::Approx(0.75).epsilon(0.01));
  tape.backward(y, Tensor::full({kLarge}, 1));
  CHECK(same_bits(x.gradient()->sum(), y.value()));
  const Var other = dropout(tape, x, 0.25, Rng(3, 2, 4));
  CHECK_FALSE(same_bits(other.value(), y.value()));
}

TEST_CASE("dropout of probability 0 is the value itself, and 1 is refused") {
  Tape tape(true);
  const Var x = Var::leaf(random_tensor({4}, 1));
  CHECK(dropout(tape, x, 0, Rng(1, 1, 1)).value().data() == x.value().data());
  CHECK(tape.size() == 0);
  CHECK_THROWS_AS(dropout(tape, x, 1, Rng(1, 1, 1)), UsageError);
  CHECK_THROWS_AS(dropout(tape, x, NAN, Rng(1, 1, 1)), UsageError);
}

TEST_CASE("pointwise operations refuse different shapes, and do not record without need") {
  Tape tape(true);
  const Tensor a = random_tensor({2, 3}, 1);
  const Tensor b = random_tensor({3, 2}, 2);
  CHECK_THROWS_AS(add(tape, a, b), ShapeError);
  CHECK_THROWS_AS(multiply(tape, a, b), ShapeError);
  CHECK_THROWS_AS(gated(tape, a, b, Activation::silu), ShapeError);
  CHECK_FALSE(add(tape, a, a).wants_gradient());
  CHECK(tape.size() == 0);
}

TEST_CASE("clamp keeps what is within, and hands no gradient to what is not") {
  const std::vector<Tensor> inputs{random_tensor({2, 30, 7}, 1)};
  const Operation operation = [](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    return {clamp(tape, x[0], Real{-0.5}, Real{0.75})};
  };
  Tape tape(false);
  const Tensor y = operation(tape, {inputs[0]})[0].value();
  for (Index i = 0; i < y.count(); ++i) CHECK(y.data()[i] == std::clamp(inputs[0].data()[i], Real{-0.5}, Real{0.75}));
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
}

}  // namespace quipu
