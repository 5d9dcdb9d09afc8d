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

  /// Its lines: that of the mixer, and that of the channel mixer where there is one.
  Index lines() const { return channel_ ? 2 : 1; }
  /// One line. x: [B,T,D];  state: of its mixer.
  Var forward(Tape& tape, Index line, const Var& x, const Context& context, State& state) const;
  /// x: [B,D], in place.
  void step(Matrix x, const Context& context, State& mixer_state, State& channel_state) const;
  void visit(const ParameterVisitor& visitor);

  const Mixer& mixer() const { return *mixer_; }
  /// Null without one.
  const Mixer* channel() const { return channel_.get(); }

 private:
  void step_line(const Mixer& f, const Norm& norm, Matrix x, const Context& context, State& state) const;

  std::unique_ptr<Mixer> mixer_, channel_;
  bool post_;
  Norm mixer_norm_, channel_norm_;
  Index layer_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
