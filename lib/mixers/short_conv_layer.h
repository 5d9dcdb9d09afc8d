#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "grad/parameter.h"
#include "scan/short_conv.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A short convolution with its weight [C,1,W] and, where wanted, its bias [C]. Its state, the last W-1 inputs
/// [B,W-1,C], is a leaf of the mixer's that owns it.
class ShortConv {
 public:
  ShortConv() = default;
  ShortConv(Index channels, Index width, bool with_bias = false, Activation activation = Activation::silu)
      : activation_(activation) {
    const double bound = 1 / std::sqrt(static_cast<double>(width));
    weight_ = Parameter({channels, 1, width}, uniform(bound));
    if (with_bias) bias_ = undecayed({channels}, uniform(bound));
  }

  Index channels() const { return weight_.shape()[0]; }
  Index width() const { return weight_.shape()[2]; }

  /// x: [B,T,C]. Replaces `state` by that after the last token.
  Var operator()(Tape& tape, const Var& x, const Layout& layout, Var& state) const {
    return split(tape, x, layout, state, {}).front();
  }
  /// The same, its channels in outputs of `parts` channels.
  std::vector<Var> split(Tape& tape, const Var& x, const Layout& layout, Var& state, std::vector<Index> parts) const {
    ShortConvOutput out =
        short_conv(tape, {x, weight_.var(), bias_.var(), state, activation_, std::move(parts)}, layout);
    state = out.state;
    return std::move(out.parts);
  }
  /// x, y: [B,C], y may be x. Allocates nothing.
  void step(Matrix y, Matrix x, Tensor& state) const {
    short_conv_step(y, x, weight_.value(), bias_.value(), activation_, state);
  }
  Tensor initial_state(Index lanes) const { return Tensor::zeros({lanes, width() - 1, channels()}); }

  /// As NAME.weight and NAME.bias.
  void visit(const ParameterVisitor& visitor, const std::string& name) {
    visitor(name + ".weight", weight_);
    if (bias_.shape().rank() > 0) visitor(name + ".bias", bias_);
  }

 private:
  Activation activation_ = Activation::silu;
  Parameter weight_, bias_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
