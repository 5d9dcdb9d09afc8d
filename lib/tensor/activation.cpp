#include "tensor/activation.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace quipu {

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::identity:
      return "identity";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::relu:
      return "relu";
    case Activation::relu2:
      return "relu2";
    case Activation::tanh:
      return "tanh";
    case Activation::elu1:
      return "elu1";
    case Activation::log_sigmoid:
      return "log_sigmoid";
    case Activation::exp:
      return "exp";
    case Activation::softplus:
      return "softplus";
  }
  throw InternalError("activation number {}", static_cast<int>(activation));
}

Activation activation_from_name(std::string_view name) {
  std::string known;
  for (const Activation activation : kActivations) {
    if (activation_name(activation) == name) return activation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", activation_name(activation));
  }
  throw UsageError("activation: there is no '{}'; take one of {}", name, known);
}

}  // namespace quipu
