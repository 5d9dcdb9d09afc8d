#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/block.h"
#include "models/config.h"
#include "models/sequence_model.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Embedding, blocks, final norm, head.
class LanguageModel final : public SequenceModel {
 public:
  /// Builds what `config` says; the values of the parameters are undefined until they are initialised or loaded.
  /// Without `gradients` none are allocated, and matrices may have other number formats. Throws UsageError where the
  /// configuration cannot be.
  LanguageModel(const ModelConfig& config, bool gradients, const FormatChoice& format = {});

  /// With all defaults filled in.
  const ModelConfig& config() const { return config_; }
  /// Where published defaults had to give way, one line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Recompute each block's activations in backward instead of keeping them.
  void set_checkpoint_activations(bool on) { checkpoint_activations_ = on; }
  /// Probability with which a block is left out of a training step.
  void set_layer_dropout(double p) { layer_dropout_ = p; }
  const std::vector<Block>& blocks() const { return blocks_; }
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
  Var forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
              ModelState& state) const override;
  LossOutput loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                  const LossOptions& options = {}) const override;
  void logits_into(Matrix logits, Matrix hidden) const override;
  void step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch, Matrix logits) const override;

 private:
  void build_blocks();
  bool has_embedding_norm() const { return config_.embedding_norm != "none"; }
  Var embed(Tape& tape, std::span<const std::int32_t> tokens, const Context& context, ModelState& state) const;
  Var run_block(Tape& tape, std::size_t layer, const Var& x, const Context& context, ModelState& state,
                Carry& carry) const;
  const Parameter& head() const { return config_.head == "tied" ? embedding_ : head_; }

  ModelConfig config_;
  std::vector<std::string> notes_;
  SharedParameters shared_;
  Parameter embedding_, positions_, head_;
  std::vector<Block> blocks_;
  Norm embedding_norm_, norm_;
  std::unique_ptr<Parameters> parameters_;
  bool checkpoint_activations_ = false;
  double layer_dropout_ = 0;
};

}  // namespace quipu::inline QUIPU_REAL_NS
