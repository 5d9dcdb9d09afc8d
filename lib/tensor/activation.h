#pragma once
#include <string_view>

#include "base/real.h"

namespace quipu {

/// Pointwise nonlinearities. gelu is the tanh form, silu x sigmoid(x), relu2 relu(x)^2, elu1 elu(x) + 1.
enum class Activation { identity, sigmoid, silu, gelu, relu, relu2, tanh, elu1, log_sigmoid, exp, softplus };

inline constexpr Activation kActivations[] = {Activation::identity, Activation::sigmoid, Activation::silu,
                                              Activation::gelu,     Activation::relu,    Activation::relu2,
                                              Activation::tanh,     Activation::elu1,    Activation::log_sigmoid,
                                              Activation::exp,      Activation::softplus};

/// As it stands in configurations: "silu", "log_sigmoid".
std::string_view activation_name(Activation activation);
/// Throws UsageError that lists the names, for any other.
Activation activation_from_name(std::string_view name);

/// Whether the backward pass of an activation needs its output (else its input).
constexpr bool keeps_output(Activation activation) {
  return activation != Activation::silu && activation != Activation::gelu;
}

inline namespace QUIPU_REAL_NS {
namespace kernels {

/// y = f(x). NaN gives NaN; y may be x.
void activate(Activation activation, Real* y, const Real* x, Index n);
/// dx = dy f'(x), where `kept` is y if keeps_output(activation), else x. dx may be dy.
void activate_backward(Activation activation, Real* dx, const Real* dy, const Real* kept, Index n);
/// y = f(gate) x. y may be either.
void gated(Activation activation, Real* y, const Real* gate, const Real* x, Index n);
/// dgate = dy x f'(gate), dx = dy f(gate). Outputs may be any of the inputs, but not the same one.
void gated_backward(Activation activation, Real* dgate, Real* dx, const Real* dy, const Real* gate, const Real* x,
                    Index n);

}  // namespace kernels
}  // namespace QUIPU_REAL_NS
}  // namespace quipu
