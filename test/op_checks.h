#pragma once
#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compare.h"
#include "grad/gradcheck.h"
#include "grad/tape.h"

/// What tests of tape operations share.
namespace quipu::inline QUIPU_REAL_NS {

/// Normal random numbers, a function of the shape's elements and `site` alone.
inline Tensor random_tensor(const Shape& shape, std::uint64_t site, double scale = 1) {
  const Rng rng(11, 0, site);
  Tensor tensor(shape);
  for (Index i = 0; i < tensor.count(); ++i)
    tensor.data()[i] = static_cast<Real>(scale * rng.normal(static_cast<std::uint64_t>(i)));
  return tensor;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.count()) * sizeof(Real)) == 0;
}

using NamedVars = std::map<std::string, Var>;

/// Runs `op` on all inputs and parameters of a case ("input/x", "param/weight") and compares output and gradients.
inline void check_golden(const GoldenCase& golden, const std::function<Var(Tape&, const NamedVars&)>& op) {
  INFO(golden.name());
  NamedVars vars;
  for (const char* group : {"input", "param"})
    for (const std::string& name : golden.tensors(group))
      vars[group + ("/" + name)] = Var::leaf(tensor_of(golden.tensor(group + ("/" + name))));
  REQUIRE_FALSE(vars.empty());
  Tape tape(true);
  const Var y = op(tape, vars);
  CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
  tape.backward(y, tensor_of(golden.tensor("cotangent")));
  for (const auto& [name, var] : vars) {
    INFO(name);
    REQUIRE(var.gradient()->sum().defined());
    CHECK(relative_error(var.gradient()->sum(), golden.tensor("grad/" + name)) < kGradientTolerance);
  }
}

using Operation = std::function<std::vector<Var>(Tape&, const std::vector<Var>&)>;

/// Gradients against finite differences (in double; in float they are only run).
inline void check_gradients(const Operation& op, const std::vector<Tensor>& inputs) {
  const double error = gradient_error(op, inputs);
  CHECK(std::isfinite(error));
  if (kIsDouble) CHECK(error < kDifferenceTolerance);
}

/// Outputs, then gradients of the inputs (undefined where none arrived), with random seeds.
inline std::vector<Tensor> outputs_then_gradients(const Operation& op, const std::vector<Tensor>& inputs) {
  Tape tape(true);
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.push_back(Var::leaf(input.clone()));
  std::vector<Tensor> results;
  std::vector<std::pair<Var, Tensor>> seeds;
  for (const Var& y : op(tape, leaves)) {
    results.push_back(y.value());
    seeds.emplace_back(y, random_tensor(y.shape(), 100 + seeds.size()));
  }
  tape.backward(seeds);
  for (const Var& leaf : leaves) results.push_back(leaf.gradient()->take());
  return results;
}

/// Outputs and gradients are bit-identical with 1, 2 and 4 threads.
inline void check_threads(const Operation& op, const std::vector<Tensor>& inputs) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> wanted = outputs_then_gradients(op, inputs);
  for (const int threads : {2, 4}) {
    omp_set_num_threads(threads);
    const std::vector<Tensor> got = outputs_then_gradients(op, inputs);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(threads);
      CAPTURE(i);
      CHECK(same_bits(got[i], wanted[i]));
    }
  }
  omp_set_num_threads(before);
}

}  // namespace quipu::inline QUIPU_REAL_NS
