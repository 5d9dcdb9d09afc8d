#pragma once
#include <string>

#include "grad/linear_layer.h"
#include "grad/ops_pointwise.h"
#include "mixers/mixer.h"
#include "mixers/short_conv_layer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y = silu(conv(W x)) with a short convolution over time, or y = silu(W x) without.
class ConvProjection {
 public:
  ConvProjection() = default;
  /// conv_size: taps; 0: no convolution.
  ConvProjection(Index out, Index dim, Index conv_size) : map_(out, dim, normal(0.02)), convolved_(conv_size > 0) {
    if (convolved_) conv_ = ShortConv(out, conv_size);
  }

  Index out() const { return map_.out(); }

  /// x: [B,T,D];  y: [B,T,out]. The convolution's state is leaf `leaf` of `state`, which moves on.
  Var operator()(Tape& tape, const Var& x, const Layout& layout, State& state, std::size_t leaf) const {
    const Var y = map_(tape, x);
    return convolved_ ? conv_(tape, y, layout, state.real(leaf)) : activate(tape, y, Activation::silu);
  }
  /// x: [B,D];  y: [B,out].
  void step(Matrix y, Matrix x, State& state, std::size_t leaf) const {
    map_.step(y, x);
    if (convolved_)
      conv_.step(y, y, state.writable(leaf));
    else
      activate_into(Activation::silu, y.data, y.data, y.rows * y.cols);
  }

  /// Adds the convolution's leaf, if there is one.
  void add_state(State& state, const std::string& name, Index lanes) const {
    if (convolved_) state.add_real(name, "(W-1) C", conv_.initial_state(lanes));
  }
  /// As NAME_proj.weight and NAME_conv1d.weight.
  void visit(const ParameterVisitor& visitor, const std::string& name) {
    map_.visit(visitor, name + "_proj");
    if (convolved_) conv_.visit(visitor, name + "_conv1d");
  }

 private:
  Linear map_;
  bool convolved_ = false;
  ShortConv conv_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
