#include "grad/ops_rows.h"

#include "op_checks.h"

using namespace quipu;

TEST_CASE("one factor a row, the mean over heads, and a row for every head") {
  const Tensor x = random_tensor({2, 3, 4, 5}, 1), factors = random_tensor({2, 3, 4}, 2);
  Tape tape(false);
  const Tensor scaled = scale_rows(tape, x, factors).value(), mean = mean_heads(tape, x).value();
  const Tensor repeated = repeat_heads(tape, mean, 3).value();
  CHECK(mean.shape() == Shape{2, 3, 1, 5});
  CHECK(repeated.shape() == Shape{2, 3, 1, 3, 5});
  for (Index token = 0; token < 6; ++token)
    for (Index c = 0; c < 5; ++c) {
      double sum = 0;
      for (Index h = 0; h < 4; ++h) {
        const Index row = token * 4 + h;
        sum += static_cast<double>(x.data()[row * 5 + c]);
        CHECK(scaled.data()[row * 5 + c] == x.data()[row * 5 + c] * factors.data()[row]);
      }
      CHECK(static_cast<double>(mean.data()[token * 5 + c]) == doctest::Approx(sum / 4).epsilon(1e-5));
      for (Index h = 0; h < 3; ++h) CHECK(repeated.data()[(token * 3 + h) * 5 + c] == mean.data()[token * 5 + c]);
    }
  CHECK_THROWS_AS(scale_rows(tape, x, random_tensor({2, 3}, 3)), ShapeError);
}

TEST_CASE("gradients between the rows of a token, with any number of threads") {
  const std::vector<Tensor> inputs{random_tensor({2, 70, 4, 5}, 1), random_tensor({2, 70, 4}, 2)};
  const Operation operation = [](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    return {scale_rows(tape, x[0], x[1]), mean_heads(tape, x[0]), repeat_heads(tape, x[0], 3)};
  };
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
}
