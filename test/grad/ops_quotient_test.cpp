#include "grad/ops_quotient.h"

#include "op_checks.h"

using namespace quipu;

TEST_CASE("divisors: nothing added, an epsilon, and each bound") {
  const Divisor plain{}, value{.least = 0.5}, magnitude{.least = 0.5, .bound = Divisor::Bound::magnitude};
  const Divisor kept{.eps = 0, .least = 0.5, .bound = Divisor::Bound::signed_}, added{.eps = 0.25};
  CHECK(plain(-3) == -3);
  CHECK(added(1) == Real{1.25});
  const Real small = static_cast<Real>(0.25);
  CHECK(value(-3) == Real{0.5});
  CHECK(value(2) == 2);
  CHECK(magnitude(-3) == 3);
  CHECK(magnitude(-small) == Real{0.5});
  CHECK(kept(-3) == -3);
  CHECK(kept(-small) == Real{-0.5});
  CHECK(kept(small) == Real{0.5});
  CHECK(kept(0) == Real{0.5});
  CHECK(value.slope(-3) == 0);
  CHECK(magnitude.slope(-3) == -1);
  CHECK(kept.slope(-3) == 1);
  CHECK(kept.slope(small) == 0);
  CHECK(plain.slope(small) == 1);
}

TEST_CASE("quotients: gradients within and beyond each bound, threads and shapes") {
  Tensor d = random_tensor({2, 50, 3}, 2);  // away from the bounds, where there is no derivative
  for (Real& value : d.span())
    if (std::abs(std::abs(value) - Real{0.5}) < Real{0.01f}) value = 1;
  const Operation operation = [](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    std::vector<Var> y;
    for (const Divisor::Bound bound : {Divisor::Bound::value, Divisor::Bound::magnitude, Divisor::Bound::signed_})
      y.push_back(quotient(tape, x[0], x[1], {.least = 0.5, .bound = bound}));
    y.push_back(quotient(tape, x[0], x[1], {.eps = 5}));
    return y;
  };
  const std::vector<Tensor> inputs{random_tensor({2, 50, 3, 4}, 1), d};
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
  Tape tape(false);
  CHECK_THROWS_AS(quotient(tape, inputs[0], random_tensor({2, 50}, 1), Divisor{}), ShapeError);
}
