#pragma once
#include "models/language_model.h"
#include "profile/mode.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The least work of one token: what an implementation cannot do without, not what this one does.
struct TokenCost {
  double flops = 0;
  double bytes = 0;  ///< between memory and processor
};

/// Tokens of each of `lanes` sequences that are read at once: as `generate` does, and fewer of many lanes, whose
/// activations would outweigh their states.
Index prompt_chunk(Index lanes);

/// What a token costs in `mode` at `length` tokens, in a batch of `lanes`.
///
/// FLOPs: two for every weight that a token is multiplied with, and two for every multiply-add of the mixing itself
/// (Mixer::mixing_cost), at position `length` where decoding, over all positions up to it elsewhere; three times that
/// in training, whose backward pass is two forward passes; nothing for recomputing. The head counts where logits are
/// made: not where a prompt is read. Bytes: the weights that are multiplied with, once a step or chunk; each lane's
/// state, in once, and out again where its size is fixed. In training twelve passes over the parameters (forward and
/// backward read them, the gradients are zeroed, written and measured, AdamW reads four arrays and writes three), and
/// two over the `kept` bytes of activations that wait for the backward pass.
TokenCost token_cost(const LanguageModel& model, ProfileMode mode, Index length, Index lanes, double kept = 0);

/// Bytes of the weights that a token is multiplied with or that scale it, in the formats they are stored in: all but
/// tables that rows are picked from. Without `head`, those of the stack alone.
double weight_bytes(const LanguageModel& model, bool head);

}  // namespace quipu::inline QUIPU_REAL_NS
