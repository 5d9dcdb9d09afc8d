#include "grad/ops_features.h"

#include "grad/ops_linear.h"
#include "op_checks.h"
#include "tensor/kernels.h"

using namespace quipu;

TEST_CASE("sines and cosines over the range that random features have") {
  const Tensor x = random_tensor({1003}, 1, 300);
  x.data()[0] = 0;
  Tensor sine(x.shape()), cosine(x.shape());
  kernels::sine_cosine(sine.data(), cosine.data(), x.data(), x.count());
  for (Index i = 0; i < x.count(); ++i) {
    const double angle = static_cast<double>(x.data()[i]);
    CHECK(std::abs(static_cast<double>(sine.data()[i]) - std::sin(angle)) < (kIsDouble ? 1e-15 : 3e-7));
    CHECK(std::abs(static_cast<double>(cosine.data()[i]) - std::cos(angle)) < (kIsDouble ? 1e-15 : 3e-7));
  }
}

TEST_CASE("a row of zeros stays one, others come to the length of their weights") {
  Tensor x = random_tensor({2, 3, 4}, 1);
  std::fill_n(x.data(), 4, Real{0});
  Tape tape(true);
  const Var leaf = Var::leaf(x);
  const Var y = unit_rows(tape, leaf, {}, 0);
  for (Index r = 0; r < 6; ++r) {
    double squares = 0;
    for (Index c = 0; c < 4; ++c) squares += std::pow(static_cast<double>(y.value().data()[r * 4 + c]), 2);
    CHECK(squares == doctest::Approx(r == 0 ? 0 : 1));
  }
  tape.backward(y, random_tensor(y.shape(), 2));
  for (const Real g : leaf.gradient()->sum().span()) CHECK(std::isfinite(g));
}

TEST_CASE("gradients of feature maps, with any number of threads") {
  const Tensor projection = random_tensor({6, 5}, 9);
  const Operation operation = [&](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    return {positive_exponents(tape, x[0], projection, Real{0.7f}), unit_rows(tape, x[0], x[1], 0.01),
            unit_rows(tape, x[0], {}, 0), sine_cosine(tape, x[0], Real{0.3f})};
  };
  const std::vector<Tensor> inputs{random_tensor({2, 50, 3, 5}, 1), random_tensor({3, 1, 5}, 2)};
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
  Tape tape(false);
  CHECK_THROWS_AS(positive_exponents(tape, random_tensor({2, 4}, 1), projection, 1), ShapeError);
  CHECK_THROWS_AS(unit_rows(tape, random_tensor({2, 4}, 1), random_tensor({5}, 1), 1), ShapeError);
}
