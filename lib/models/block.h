#pragma once
#include <memory>

#include "mixers/mixer.h"
#include "models/norm.h"

namespace quipu::inline QUIPU_REAL_NS {

/// How a block normalises.
struct BlockNorm {
  std::string kind;  ///< layernorm, rmsnorm
  double eps;
  bool post;  ///< x = norm(x + f(x)) in place of x += f(norm x)
};

/// A residual block:  x += mixer(norm1 x);  x += channel(norm2 x), each after dropout (or with the norms behind the
/// sums); without a channel mixer, the first line alone. A mixer that owns its residual stands there by itself.
class Block {
 public:
  Block(std::unique_ptr<Mixer> mixer, std::unique_ptr<Mixer> channel, const BlockNorm& norm, Index dim, Index layer);

  /// x: [B,T,D];  states: of the mixer and of the channel mixer.
  Var forward(Tape& tape, const Var& x, const Context& context, State& mixer_state, State& channel_state) const;
  /// x: [B,D], in place.
  void step(Matrix x, const Context& context, State& mixer_state, State& channel_state) const;
  void visit(const ParameterVisitor& visitor);

  const Mixer& mixer() const { return *mixer_; }
  /// Null without one.
  const Mixer* channel() const { return channel_.get(); }

 private:
  /// One of the two lines; `site`: of its dropout.
  Var line(Tape& tape, const Mixer& f, const Norm& norm, const Var& x, const Context& context, State& state,
           Index site) const;
  void step_line(const Mixer& f, const Norm& norm, Matrix x, const Context& context, State& state) const;

  std::unique_ptr<Mixer> mixer_, channel_;
  bool post_;
  Norm mixer_norm_, channel_norm_;
  Index layer_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
