#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"
#include "tensor/activation.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a short convolution reads.
struct ShortConvInput {
  Var x{};       ///< [B,T,C]
  Var weight{};  ///< [C,W] or, as published, [C,1,W]; the last tap is that of the token itself
  Var bias{};    ///< [C], or undefined
  Var state{};   ///< the W-1 inputs before the first token, oldest first, [B,W-1,C]; undefined: zero
  Activation activation = Activation::silu;
  std::vector<Index> parts{};  ///< channels of each output, C in all; empty: one output of all channels
};

struct ShortConvOutput {
  std::vector<Var> parts;  ///< [B,T,..] each, as asked for; zero on padding
  Var state{};             ///< the last W-1 inputs, [B,W-1,C]

  const Var& y() const { return parts.front(); }
};

/// Depthwise causal convolution over time:  y_t = f(b + sum_{j<W} w_j x_{t-W+1+j}), each channel for itself. Inputs
/// before a document's start count as zero; padding is never read. Keeps x and recomputes the rest in backward.
/// Throws ShapeError where the inputs disagree, or W < 2.
ShortConvOutput short_conv(Tape& tape, const ShortConvInput& input, const Layout& layout);

/// One token of the same.  x, y: [B,C], y may be x;  state [B,W-1,C] moves on in place.
void short_conv_step(Matrix y, Matrix x, const Tensor& weight, const Tensor& bias, Activation activation,
                     Tensor& state);

}  // namespace quipu::inline QUIPU_REAL_NS
