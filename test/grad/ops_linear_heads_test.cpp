#include "grad/ops_linear.h"
#include "op_checks.h"

using namespace quipu;

TEST_CASE("a map for each head: values, gradients, threads and shapes") {
  const Tensor x = random_tensor({2, 90, 3, 4}, 1), weight = random_tensor({3, 5, 4}, 2),
               bias = random_tensor({3, 5}, 3);
  Tape tape(false);
  const Tensor y = linear_heads(tape, x, weight, bias).value();
  CHECK(y.shape() == Shape{2, 90, 3, 5});
  for (Index row = 0; row < 2 * 90 * 3; ++row)
    for (Index o = 0; o < 5; ++o) {
      const Index h = row % 3;
      double sum = static_cast<double>(bias.data()[h * 5 + o]);
      for (Index i = 0; i < 4; ++i)
        sum += static_cast<double>(weight.data()[(h * 5 + o) * 4 + i]) * static_cast<double>(x.data()[row * 4 + i]);
      CHECK(std::abs(static_cast<double>(y.data()[row * 5 + o]) - sum) < (kIsDouble ? 1e-12 : 1e-5));
    }
  const Operation operation = [](Tape& t, const std::vector<Var>& in) -> std::vector<Var> {
    return {linear_heads(t, in[0], in[1], in[2]), linear_heads(t, in[0], in[1])};
  };
  check_gradients(operation, {x, weight, bias});
  check_threads(operation, {x, weight, bias});
  CHECK_THROWS_AS(linear_heads(tape, random_tensor({2, 3, 5}, 1), weight), ShapeError);
  CHECK_THROWS_AS(linear_heads(tape, random_tensor({2, 2, 4}, 1), weight), ShapeError);
}
