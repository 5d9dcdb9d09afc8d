#include "grad/ops_loss.h"

#include <doctest/doctest.h>

#include "compare.h"
#include "mixers/instance.h"

using namespace quipu;

namespace {

/// A golden case through the fused loss: with the identity as weight the hidden states are the logits. fairseq's
/// smoothing spreads e / (V - 1) over the others, which is PyTorch's with e V / (V - 1).
void check_case(const GoldenCase& golden) {
  INFO(golden.name());
  const GoldenTensor logits = golden.tensor("input/logits");
  const Index vocab = logits.shape[1];
  const bool fairseq = golden.name().find("fairseq") != std::string::npos;
  const bool summed = fairseq || golden.name().find("sum") != std::string::npos;
  const std::int32_t ignored = golden.name().find("pad1") != std::string::npos ? 1 : -100;
  LossOptions options;
  if (golden.name().find("smoothing") != std::string::npos) options.smoothing = 0.1;
  if (fairseq) options.smoothing *= static_cast<double>(vocab) / static_cast<double>(vocab - 1);
  if (summed) options.divisor = 1;

  std::vector<std::int32_t> targets;
  for (const double t : golden.tensor("targets").values)
    targets.push_back(static_cast<std::int32_t>(t) == ignored ? kNoTarget : static_cast<std::int32_t>(t));
  Tensor identity = Tensor::zeros({vocab, vocab});
  for (Index i = 0; i < vocab; ++i) identity.data()[i * vocab + i] = 1;
  const Var hidden = Var::leaf(tensor_of(logits));
  Tape tape(true);
  const LossOutput out = projected_cross_entropy(tape, hidden, identity, {}, targets, options);
  CHECK(relative_error(out.loss.value(), golden.tensor("output")) < kOutputTolerance);
  tape.backward(out.loss, tensor_of(golden.tensor("cotangent")));
  CHECK(relative_error(hidden.gradient()->sum(), golden.tensor("grad/input/logits")) < kGradientTolerance);
}

}  // namespace

TEST_CASE("loss: golden cases") {
  const GoldenFile file("losses");
  for (const std::string& name : file.cases()) check_case(file.at(name));
}

TEST_CASE("loss: slices of rows change nothing, gradients of weight and bias included") {
  const Index rows = 700, vocab = 23, dim = 7;  // more scored rows than a slice
  const Var hidden = Var::leaf(random_tensor({rows, dim}, 1)), weight = Var::leaf(random_tensor({vocab, dim}, 2));
  const Var bias = Var::leaf(random_tensor({vocab}, 3));
  std::vector<std::int32_t> targets;
  for (Index r = 0; r < rows; ++r) targets.push_back(r % 5 == 0 ? kNoTarget : static_cast<std::int32_t>(r % vocab));
  Tape tape(true);
  const LossOutput out = projected_cross_entropy(tape, hidden, weight, bias, targets);
  tape.backward(out.loss);

  std::vector<double> dh(static_cast<std::size_t>(rows * dim)), dw(static_cast<std::size_t>(vocab * dim)),
      db(vocab, 0.0);
  double nll_sum = 0;
  Index scored = 0;
  for (const std::int32_t t : targets) scored += t != kNoTarget;
  for (Index r = 0; r < rows; ++r) {
    const std::int32_t target = targets[static_cast<std::size_t>(r)];
    if (target == kNoTarget) continue;
    std::vector<double> logits(static_cast<std::size_t>(vocab));
    double total = 0;
    for (Index j = 0; j < vocab; ++j) {
      double sum = bias.value().data()[j];
      for (Index c = 0; c < dim; ++c)
        sum += static_cast<double>(hidden.value().data()[r * dim + c]) * weight.value().data()[j * dim + c];
      logits[static_cast<std::size_t>(j)] = std::exp(sum);
      total += logits[static_cast<std::size_t>(j)];
    }
    const double nll = -std::log(logits[static_cast<std::size_t>(target)] / total);
    nll_sum += nll;
    CHECK(out.nll_nats[static_cast<std::size_t>(r)] == doctest::Approx(nll).epsilon(1e-5));
    for (Index j = 0; j < vocab; ++j) {
      const double d = (logits[static_cast<std::size_t>(j)] / total - (j == target)) / static_cast<double>(scored);
      db[static_cast<std::size_t>(j)] += d;
      for (Index c = 0; c < dim; ++c) {
        dh[static_cast<std::size_t>(r * dim + c)] += d * weight.value().data()[j * dim + c];
        dw[static_cast<std::size_t>(j * dim + c)] += d * hidden.value().data()[r * dim + c];
      }
    }
  }
  CHECK(out.tokens == scored);
  CHECK(out.nll_sum_nats == doctest::Approx(nll_sum).epsilon(1e-6));
  CHECK(relative_error(hidden.gradient()->sum().span(), dh) < kGradientTolerance);
  CHECK(relative_error(weight.gradient()->sum().span(), dw) < kGradientTolerance);
  CHECK(relative_error(bias.gradient()->sum().span(), db) < kGradientTolerance);
}

TEST_CASE("loss: where nothing is scored, the loss and all gradients are zero") {
  const Var hidden = Var::leaf(random_tensor({2, 3, 5}, 1)), weight = Var::leaf(random_tensor({7, 5}, 2));
  Tape tape(true);
  const LossOutput out = projected_cross_entropy(tape, hidden, weight, {}, std::vector<std::int32_t>(6, kNoTarget));
  tape.backward(out.loss);
  CHECK(out.tokens == 0);
  CHECK(out.nll_sum_nats == 0);
  for (const Var& var : {hidden, weight})
    for (const Real d : var.gradient()->sum().span()) CHECK(d == 0);
}

TEST_CASE("loss: a target outside the vocabulary is refused") {
  Tape tape(false);
  const std::vector<std::int32_t> targets{1, 4};
  CHECK_THROWS_WITH_AS(
      projected_cross_entropy(tape, random_tensor({2, 3}, 1), random_tensor({4, 3}, 2), {}, targets),
      "loss: token id 4 is outside the vocabulary (size 4); convert the text with the model's tokenizer", InputError);
}
