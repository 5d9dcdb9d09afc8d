#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/segment_memory.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Embedding, a stack of blocks, with memory tokens around segments or without, and the head.
class LanguageModel final : public SequenceModel {
 public:
  /// Builds what `config` says; the values of the parameters are undefined until they are initialised or loaded.
  /// Without `gradients` none are allocated, and matrices may have other number formats. Throws UsageError where the
  /// configuration cannot be.
  LanguageModel(const ModelConfig& config, bool gradients, const FormatChoice& format = {});

  /// With all defaults filled in.
  const ModelConfig& config() const { return config_; }
  /// Where published defaults had to give way, one line each.
  const std::vector<std::string>& notes() const { return stack_.notes(); }
  /// Recompute each block's activations in backward instead of keeping them.
  void set_checkpoint_activations(bool on) { stack_.set_checkpoint_activations(on); }
  /// Probability with which a block is left out of a training step.
  void set_layer_dropout(double p) { stack_.set_layer_dropout(p); }
  const std::vector<Block>& blocks() const { return stack_.blocks(); }
  /// How the memory behaves as a stream goes on; of fixed length too where positions are learned for a context.
  Memory memory() const;
  /// FLOPs a token of a forward pass at position `length`: two per multiply-add.
  double forward_flops(Index length) const;
  /// Numbers in the weights that a token is multiplied with (all matrices but the embedding table).
  Index matrix_parameters() const;

  Parameters& parameters() override { return *parameters_; }
  const Parameters& parameters() const { return *parameters_; }
  Index vocab() const override { return config_.vocab; }
  ModelState initial_state(Index lanes) const override;
  void reset(ModelState& state, Index lane) const override;
  Index state_bytes(Index length) const override;
  Index held_bytes(const ModelState& state) const override { return state.bytes() - stack_.spare_bytes(state); }
  Var forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
              ModelState& state) const override;
  LossOutput loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                  const LossOptions& options = {}) const override;
  void logits_into(Matrix logits, Matrix hidden) const override;
  void step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch, Matrix logits) const override;

 private:
  void visit(const ParameterVisitor& visitor);
  bool has_embedding_norm() const { return config_.embedding_norm != "none"; }
  bool has_head_bias() const { return config_.head_bias == "bias"; }
  Var embed(Tape& tape, std::span<const std::int32_t> tokens, const Layout& layout) const;
  const Parameter& head() const { return config_.head == "tied" ? embedding_ : head_; }

  ModelConfig config_;
  SharedParameters shared_;
  Stack stack_;
  Parameter embedding_, head_, head_bias_;
  Norm embedding_norm_;
  std::optional<SegmentMemory> memory_;
  std::unique_ptr<Parameters> parameters_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
