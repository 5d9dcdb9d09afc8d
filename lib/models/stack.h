#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/block.h"
#include "models/config.h"
#include "models/sequence_model.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Positions, blocks and the final norm: what turns embedded rows [B,T,D] into the rows that a head reads. Of a model's
/// state it uses the first two entries of each block, and the positions.
class Stack {
 public:
  /// Builds what `config` says, and fills in what it leaves open. Throws UsageError where it cannot be.
  Stack(ModelConfig& config, SharedParameters& shared);

  /// What suits the first layer's mixer.
  const BlockDefaults& suits() const { return suits_; }
  /// Where published defaults had to give way, one line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Recompute each block's activations in backward instead of keeping them.
  void set_checkpoint_activations(bool on) { checkpoint_activations_ = on; }
  /// Probability with which a block is left out of a training step.
  void set_layer_dropout(double p) { layer_dropout_ = p; }
  const std::vector<Block>& blocks() const { return blocks_; }
  void visit(const ParameterVisitor& visitor);

  ModelState initial_state(Index lanes) const;
  void reset(ModelState& state, Index lane) const;
  /// Bytes of one lane's state after `length` rows.
  Index state_bytes(Index length) const;
  /// Of the bytes of `state`, those that wait for rows to come (Mixer::spare_bytes).
  Index spare_bytes(const ModelState& state) const;
  /// Multiply-adds a row of the mixing, at position `length`.
  double mixing_cost(Index length) const;

  /// rows: [B,T,D]; returns the same shape.
  Var forward(Tape& tape, const Var& rows, const Context& context, ModelState& state) const;
  /// One row a lane.  rows, hidden: [B,D]; rows are overwritten.
  void step(Matrix rows, Matrix hidden, ModelState& state, Scratch& scratch) const;

 private:
  bool has_final_norm() const { return final_norm_ != "none"; }
  Var add_positions_to(Tape& tape, const Var& rows, const Layout& layout, ModelState& state) const;
  /// A line of a block; its activations are kept, or made again for the backward pass.
  Var run_line(Tape& tape, const Block& block, Index line, const Var& x, const Context& context, State& state,
               Carry& carry) const;

  Index dim_;
  std::string position_kind_, final_norm_;
  BlockDefaults suits_;
  std::vector<std::string> notes_;
  Parameter positions_;
  std::vector<Block> blocks_;
  Norm norm_;
  bool checkpoint_activations_ = false;
  double layer_dropout_ = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
