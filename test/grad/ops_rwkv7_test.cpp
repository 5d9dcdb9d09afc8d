#include "grad/ops_rwkv7.h"

#include "op_checks.h"

using namespace quipu;

namespace {

const Shape kHeads{2, 70, 3, 5};  // more than one block of tokens, and rows of no whole number of vectors

Tensor shares(const Shape& shape, std::uint64_t site) {
  Tensor x = random_tensor(shape, site);
  for (Real& value : x.span()) value = 1 / (1 + std::exp(-value));
  return x;
}

const Operation kKeys = [](Tape& tape, const std::vector<Var>& in) -> std::vector<Var> {
  const Rwkv7Keys keys = rwkv7_keys(tape, in[0], in[1], in[2], in[3]);
  return {keys.erase, keys.write, keys.key};
};

std::vector<Tensor> key_inputs() {
  return {random_tensor(kHeads, 1), shares(kHeads, 2), random_tensor({1, 1, 15}, 3), random_tensor({15}, 4)};
}

const Operation kOutput = [](Tape& tape, const std::vector<Var>& in) -> std::vector<Var> {
  return {rwkv7_output(tape, {in[0], in[1], in[2], in[3], in[4], in[5]})};
};

std::vector<Tensor> output_inputs() {
  std::vector<Tensor> inputs;
  for (std::uint64_t site = 1; site <= 5; ++site) inputs.push_back(random_tensor(kHeads, site));
  inputs.push_back(random_tensor({3, 5}, 6));
  return inputs;
}

}  // namespace

TEST_CASE("RWKV-7's keys are what their formula says") {
  const auto in = key_inputs();
  Tape tape(false);
  const Rwkv7Keys keys = rwkv7_keys(tape, in[0], in[1], in[2], in[3]);
  std::vector<double> erase, write, key;
  for (Index row = 0; row < in[0].count() / 5; ++row) {
    const auto at = [&](std::size_t input, Index c) {
      return static_cast<double>(in[input].data()[input < 2 ? row * 5 + c : row % 3 * 5 + c]);
    };
    double squares = 0;
    for (Index c = 0; c < 5; ++c) squares += std::pow(at(0, c) * at(2, c), 2);
    for (Index c = 0; c < 5; ++c) {
      const double kappa = at(0, c) * at(2, c) / std::sqrt(squares);
      erase.push_back(kappa), write.push_back(kappa * at(1, c));
      key.push_back(at(0, c) * (1 + (at(1, c) - 1) * at(3, c)));
    }
  }
  const double tolerance = kIsDouble ? 1e-14 : 1e-6;
  CHECK(relative_error(keys.erase.value().span(), erase) < tolerance);
  CHECK(relative_error(keys.write.value().span(), write) < tolerance);
  CHECK(relative_error(keys.key.value().span(), key) < tolerance);
}

TEST_CASE("RWKV-7's output is what its formula says") {
  const auto in = output_inputs();
  Tape tape(false);
  const Var o = rwkv7_output(tape, {in[0], in[1], in[2], in[3], in[4], in[5]});
  std::vector<double> wanted;
  for (Index row = 0; row < in[0].count() / 5; ++row) {
    const auto at = [&](std::size_t input, Index c) { return static_cast<double>(in[input].data()[row * 5 + c]); };
    double own = 0;
    for (Index c = 0; c < 5; ++c) own += at(1, c) * at(2, c) * static_cast<double>(in[5].data()[row % 3 * 5 + c]);
    for (Index c = 0; c < 5; ++c) wanted.push_back((at(0, c) + own * at(3, c)) * at(4, c));
  }
  CHECK(relative_error(o.value().span(), wanted) < (kIsDouble ? 1e-14 : 1e-6));
}

TEST_CASE("gradients of RWKV-7's operations") {
  check_gradients(kKeys, key_inputs());
  check_gradients(kOutput, output_inputs());
  check_gradients(
      [](Tape& tape, const std::vector<Var>& in) -> std::vector<Var> {
        return {bounded_decay(tape, in[0], Real{0.6F})};
      },
      {random_tensor({3, 7}, 1)});
  check_gradients(
      [](Tape& tape, const std::vector<Var>& in) -> std::vector<Var> { return {blend(tape, in[0], in[1], in[2])}; },
      {random_tensor({3, 7}, 1), random_tensor({3, 7}, 2), shares({3, 7}, 3)});
}

TEST_CASE("RWKV-7's operations give the same for any number of threads") {
  check_threads(kKeys, key_inputs());
  check_threads(kOutput, output_inputs());
}

TEST_CASE("RWKV-7's keys stay finite where a key is zero") {
  auto in = key_inputs();
  std::fill(in[0].span().begin(), in[0].span().end(), Real{0});
  for (const Tensor& x : outputs_then_gradients(kKeys, in))
    for (const Real value : x.span()) REQUIRE(std::isfinite(value));
}
