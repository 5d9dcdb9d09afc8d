#pragma once
#include "grad/tape.h"

/// Normalisation over the last axis, in groups where asked. eps stands inside the square root everywhere. Backward
/// keeps x and two numbers a row. Weights and biases may be undefined (then they are 1 and 0). A weight has the length
/// V of the last axis, or, for x [..,G,V], of G*V: each of the G rows of a token has weights of its own. Gradients of
/// weights are summed in blocks of tokens, in a fixed order, the blocks in double. ShapeError where lengths do not fit.
namespace quipu::inline QUIPU_REAL_NS {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias.
Var layer_norm(Tape& tape, const Var& x, const Var& weight, const Var& bias, double eps);
/// y = x / sqrt(mean(x^2) + eps) * weight.
Var rms_norm(Tape& tape, const Var& x, const Var& weight, double eps);
/// layer_norm of each of `groups` equal parts of the last axis [.., D]; weight and bias [D].
Var group_norm(Tape& tape, const Var& x, Index groups, const Var& weight, const Var& bias, double eps);
/// y = x / sqrt(sum(x^2) + eps).
Var l2_norm(Tape& tape, const Var& x, double eps);
/// y = rms_norm(x) swish(gate), gate of x's shape. Keeps x and gate, and recomputes the rest.
Var rms_norm_gated(Tape& tape, const Var& x, const Var& gate, const Var& weight, double eps);

/// y = softmax(scale x) over the last axis. Keeps y.
Var softmax_rows(Tape& tape, const Var& x, Real scale);

/// The same over plain arrays on the calling thread, without allocation, for one step of a recurrence. y may be x.
void layer_norm_into(View y, View x, const Tensor& weight, const Tensor& bias, double eps);
void rms_norm_into(View y, View x, const Tensor& weight, double eps);
void group_norm_into(View y, View x, Index groups, const Tensor& weight, const Tensor& bias, double eps);
void l2_norm_into(View y, View x, double eps);
/// y must not be gate.
void rms_norm_gated_into(View y, View x, View gate, const Tensor& weight, double eps);

}  // namespace quipu::inline QUIPU_REAL_NS
