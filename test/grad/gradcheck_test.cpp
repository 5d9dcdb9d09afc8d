#include "grad/gradcheck.h"

#include "grad/ops_pointwise.h"
#include "op_checks.h"

namespace quipu {
namespace {

using Vars = std::vector<Var>;

/// y = x^3 elementwise, whose gradient is multiplied by `factor`, and left out for element `hole`.
Operation cube(Real factor, Index hole) {
  return [=](Tape& tape, const Vars& v) {
    const Tensor x = v[0].value();
    Tensor y(x.shape());
    for (Index i = 0; i < x.count(); ++i) y.data()[i] = x.data()[i] * x.data()[i] * x.data()[i];
    return Vars{tape.record(std::move(y), {&v[0]}, [=, slot = v[0].gradient()](const Tensor& dy) {
      Tensor dx(x.shape());
      for (Index i = 0; i < x.count(); ++i)
        dx.data()[i] = i == hole ? 0 : factor * 3 * x.data()[i] * x.data()[i] * dy.data()[i];
      slot->add(dx);
    })};
  };
}

}  // namespace

TEST_CASE("the gradient check accepts a right gradient and catches wrong ones") {
  const std::vector<Tensor> x = {random_tensor({3, 5}, 1)};
  const double fine = kIsDouble ? 1e-7 : 3e-2;
  CHECK(gradient_error(cube(1, -1), x) < fine);
  CHECK(gradient_error(cube(-1, -1), x) > 0.1);
  CHECK(gradient_error(cube(Real{1.125}, -1), x) > 0.02);
  CHECK(gradient_error(cube(1, 7), x) > 0.001);
  CHECK(gradient_error(cube(NAN, -1), x) == INFINITY);
}

TEST_CASE("the gradient check sees a gradient that is missing, and one that should not be") {
  const std::vector<Tensor> x = {random_tensor({4}, 1), random_tensor({4}, 2)};
  CHECK(gradient_error([](Tape& t, const Vars& v) { return Vars{multiply(t, v[0], v[1].detached())}; }, x) > 0.1);
  const auto constant = [](Tape& t, const Vars& v) {
    return Vars{t.record(Tensor::full({4}, 1), {&v[0]}, [slot = v[0].gradient()](const Tensor& dy) { slot->add(dy); })};
  };
  CHECK(gradient_error(constant, {x[0]}) > 0.1);
  CHECK(gradient_error([](Tape&, const Vars&) { return Vars{Tensor::full({4}, 1), Var()}; }, {x[0], Tensor()}) == 0);
}

}  // namespace quipu
