#pragma once
#include <doctest/doctest.h>

#include <map>

#include "compare.h"
#include "golden.h"
#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A case's inputs and states as leaves, by their paths.
class OpCase {
 public:
  OpCase(const std::string& file, const std::string& name) : golden_(GoldenFile(file).at(name)) {}

  Var leaf(const std::string& path) {
    if (!golden_.has(path)) return {};
    return leaves_[path] = Var::leaf(tensor_of(golden_.tensor(path)));
  }

  /// Checks the outputs, then the gradients of the whole; again with gradients into the final states where the file has
  /// them. `run` builds the operation and returns y and the states by name.
  template <typename Run>
  void check(const Run& run) {
    INFO(golden_.name());
    for (const char* group : {"grad/", "grad_with_state/"}) {
      if (!golden_.has(group)) continue;
      Tape tape(true);
      const auto [y, states] = run(tape, *this);
      CHECK(relative_error(y.value(), golden_.tensor("output")) < kOutputTolerance);
      std::vector<std::pair<Var, Tensor>> seeds{{y, tensor_of(golden_.tensor("cotangent"))}};
      for (const auto& [name, state] : states) {
        if (golden_.has("final_state/" + name))
          CHECK(relative_error(state.value(), golden_.tensor("final_state/" + name)) < kOutputTolerance);
        if (std::string(group) == "grad_with_state/")
          seeds.emplace_back(state, tensor_of(golden_.tensor("cotangent_state/" + name)));
      }
      tape.backward(seeds);
      for (const auto& [path, var] : leaves_) {
        CAPTURE(path);
        if (golden_.has(group + path))
          CHECK(relative_error(var.gradient()->sum(), golden_.tensor(group + path)) < kGradientTolerance);
      }
    }
  }

 private:
  GoldenCase golden_;
  std::map<std::string, Var> leaves_;
};

/// y, and the final states by name.
using Outputs = std::pair<Var, std::map<std::string, Var>>;

}  // namespace quipu::inline QUIPU_REAL_NS
