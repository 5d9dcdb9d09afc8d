#pragma once
#include <span>
#include <vector>

#include "grad/ops_loss.h"
#include "grad/parameter.h"
#include "mixers/mixer.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The memory of a whole model over B lanes: a plain value, like the states of its layers.
struct ModelState {
  std::vector<State> layers;           ///< of each block: its token mixer, then its channel mixer
  std::vector<std::int64_t> position;  ///< of each lane, tokens of the document so far

  Index lanes() const { return static_cast<Index>(position.size()); }
  ModelState detached() const;
  ModelState gather(std::span<const Index> lanes) const;
  /// Takes over another state of the same model, in the storage that is here where shapes agree: a state that is kept
  /// for long then stays where it is, and does not wander through the memory that is used from piece to piece.
  void take(ModelState other);
  /// Bytes of all lanes.
  Index bytes() const;
};

/// Anything that reads tokens and predicts the next: what training, evaluation and generation work on.
class SequenceModel {
 public:
  virtual ~SequenceModel() = default;

  virtual Parameters& parameters() = 0;
  virtual Index vocab() const = 0;

  virtual ModelState initial_state(Index lanes) const = 0;
  /// Puts one lane back to the start of a document.
  virtual void reset(ModelState& state, Index lane) const = 0;
  /// Bytes of one lane's state after `length` tokens.
  virtual Index state_bytes(Index length) const = 0;
  /// Bytes of what `state` holds, without the rows that caches have ahead of the tokens to come.
  virtual Index held_bytes(const ModelState& state) const { return state.bytes(); }

  /// Parallel form.  tokens: [B,T] row-major; returns the hidden states [B,T,D] that the head reads.
  virtual Var forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
                      ModelState& state) const = 0;
  /// Cross entropy of the head over hidden states; targets: [B,T] row-major.
  virtual LossOutput loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                          const LossOptions& options = {}) const = 0;
  /// logits = head(hidden):  hidden: [n,D];  logits: [n,vocab].
  virtual void logits_into(Matrix logits, Matrix hidden) const = 0;
  /// Recurrent form: one token a lane; logits: [B,vocab]. Allocates nothing once it has run.
  virtual void step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch, Matrix logits) const = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
