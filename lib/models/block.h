#pragma once
#include <memory>

#include "mixers/mixer.h"
#include "models/norm.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A pre-norm residual block:  x += mixer(norm1 x);  x += channel(norm2 x), each after dropout; without a channel
/// mixer, the first line alone.
class Block {
 public:
  Block(std::unique_ptr<Mixer> mixer, std::unique_ptr<Mixer> channel, const std::string& norm, Index dim, double eps,
        Index layer);

  /// x: [B,T,D];  states: of the mixer and of the channel mixer.
  Var forward(Tape& tape, const Var& x, const Context& context, State& mixer_state, State& channel_state) const;
  /// x: [B,D], in place.
  void step(Matrix x, const Context& context, State& mixer_state, State& channel_state) const;
  void visit(const ParameterVisitor& visitor);

  const Mixer& mixer() const { return *mixer_; }
  /// Null without one.
  const Mixer* channel() const { return channel_.get(); }

 private:
  std::unique_ptr<Mixer> mixer_, channel_;
  Norm mixer_norm_, channel_norm_;
  Index layer_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
