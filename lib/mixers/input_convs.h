#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mixers/mixer.h"
#include "mixers/short_conv_layer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Short convolutions over the projected inputs of a memory, one each, or none: the options `use_short_conv` and
/// `conv_size` of flash-linear-attention's layers. Their states are leaves of the mixer's, one after another.
class InputConvs {
 public:
  struct Input {
    std::string name;  ///< names the parameter, NAME_conv1d, and the leaf, conv_NAME
    Index channels;
  };

  InputConvs() = default;
  /// Reads the options. `first_leaf`: of the mixer's state. `activation`: what follows a convolution.
  InputConvs(Options& options, std::size_t first_leaf, const std::vector<Input>& inputs,
             Activation activation = Activation::silu, bool with_bias = false)
      : first_leaf_(first_leaf) {
    const bool convolved = options.flag("use_short_conv", false, "short convolutions over what the memory reads");
    const Index taps = options.integer("conv_size", 4, 2, "taps of the short convolutions (W)");
    if (!convolved) return;
    for (const auto& [name, channels] : inputs)
      convs_.push_back({name, ShortConv(channels, taps, with_bias, activation)});
  }

  /// inputs: [B,T,C] each, replaced by what their convolution makes of them; the leaves of `state` move on.
  void operator()(Tape& tape, std::span<Var> inputs, const Layout& layout, State& state) const {
    for (std::size_t i = 0; i < convs_.size(); ++i)
      inputs[i] = convs_[i].conv(tape, inputs[i], layout, state.real(first_leaf_ + i));
  }
  /// inputs: [B,C] each, in place.
  void step(std::span<const Matrix> inputs, State& state) const {
    for (std::size_t i = 0; i < convs_.size(); ++i)
      convs_[i].conv.step(inputs[i], inputs[i], state.writable(first_leaf_ + i));
  }

  void add_state(State& state, Index lanes) const {
    for (const auto& [name, conv] : convs_) state.add_real("conv_" + name, "(W-1) C", conv.initial_state(lanes));
  }
  /// Of one lane, in the float build.
  Index state_bytes() const {
    Index numbers = 0;
    for (const auto& [name, conv] : convs_) numbers += (conv.width() - 1) * conv.channels();
    return numbers * static_cast<Index>(sizeof(float));
  }
  void visit(const ParameterVisitor& visitor) {
    for (auto& [name, conv] : convs_) conv.visit(visitor, name + "_conv1d");
  }

 private:
  struct Named {
    std::string name;
    ShortConv conv;
  };

  std::size_t first_leaf_ = 0;
  std::vector<Named> convs_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
