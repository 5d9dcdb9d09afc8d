#include "grad/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using Function = std::function<std::vector<Var>(Tape&, const std::vector<Var>&)>;

Tensor random_tensor(const Shape& shape, std::uint64_t step, std::uint64_t site) {
  const Rng rng(20, step, site);
  Tensor tensor(shape);
  for (Index i = 0; i < tensor.count(); ++i)
    tensor.data()[i] = static_cast<Real>(rng.normal(static_cast<std::uint64_t>(i)));
  return tensor;
}

double inner(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (Index i = 0; i < a.count(); ++i) sum += static_cast<double>(a.data()[i]) * static_cast<double>(b.data()[i]);
  return sum;
}

Tensor cotangent(const Var& y, std::size_t output) { return random_tensor(y.shape(), 1, output); }

double loss(const Function& fn, const std::vector<Tensor>& inputs) {
  Tape tape(false);
  const std::vector<Var> ys = fn(tape, {inputs.begin(), inputs.end()});
  double sum = 0;
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (ys[i].defined()) sum += inner(ys[i].value(), cotangent(ys[i], i));
  return sum;
}

/// The loss with one input moved by h along `direction`.
double loss_at(const Function& fn, std::vector<Tensor> inputs, std::size_t which, const Tensor& direction, double h) {
  Tensor& moved = inputs[which].unique();
  for (Index i = 0; i < moved.count(); ++i)
    moved.data()[i] += static_cast<Real>(h * static_cast<double>(direction.data()[i]));
  return loss(fn, inputs);
}

std::vector<Var> backward(const Function& fn, const std::vector<Tensor>& inputs) {
  Tape tape(true);
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.defined() ? Var::leaf(input.clone()) : Var());
  const std::vector<Var> ys = fn(tape, leaves);
  std::vector<std::pair<Var, Tensor>> seeds;
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (ys[i].defined()) seeds.emplace_back(ys[i], cotangent(ys[i], i));
  tape.backward(seeds);
  return leaves;
}

double direction_error(const Function& fn, const std::vector<Tensor>& inputs, std::size_t which, const Tensor& gradient,
                       std::uint64_t step) {
  const Tensor direction = random_tensor(inputs[which].shape(), step, which);
  const double analytic = inner(gradient, direction);
  const double typical = std::sqrt(inner(gradient, gradient));
  const double rounding = 1e-5 * std::abs(loss(fn, inputs));  // smaller derivatives drown in the loss's own digits
  double best = INFINITY;
  for (const double h : {1e-3, 1e-4, 1e-5, 1e-6}) {
    const double difference =
        (loss_at(fn, inputs, which, direction, h) - loss_at(fn, inputs, which, direction, -h)) / (2 * h);
    const double scale = std::max({std::abs(analytic), std::abs(difference), typical, rounding, 1e-30});
    const double error = std::abs(analytic - difference) / scale;
    if (!std::isfinite(error)) return INFINITY;
    best = std::min(best, error);
  }
  return best;
}

}  // namespace

double gradient_error(const Function& fn, const std::vector<Tensor>& inputs) {
  const std::vector<Var> leaves = backward(fn, inputs);
  double worst = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    const Tensor& sum = leaves[i].gradient()->sum();
    const Tensor gradient = sum.defined() ? sum : Tensor::zeros(inputs[i].shape());
    for (const std::uint64_t step : {2u, 3u, 4u})
      worst = std::max(worst, direction_error(fn, inputs, i, gradient, step));
  }
  return worst;
}

}  // namespace quipu::inline QUIPU_REAL_NS
