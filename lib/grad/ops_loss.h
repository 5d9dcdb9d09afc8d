#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "grad/tape.h"
#include "tensor/weight.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A token that is not scored.
inline constexpr std::int32_t kNoTarget = -1;

struct LossOptions {
  /// Label smoothing: (1 - e) nll + (e / vocab) sum of -log p over the whole vocabulary (PyTorch's convention).
  double smoothing = 0;
  /// What the sum is divided by; 0: the number of scored tokens.
  double divisor = 0;
};

struct LossOutput {
  Var loss;                      ///< smoothed loss over the divisor, [1]
  double nll_sum_nats = 0;       ///< without smoothing
  Index tokens = 0;              ///< scored ones
  std::vector<double> nll_nats;  ///< of each row; 0 where it is not scored
};

/// Rows of logits that are held at a time where no gradient is wanted: 512, or what 8 MiB of them hold.
inline Index logit_rows(Index vocab) {
  return std::clamp<Index>((Index{8} << 20) / (vocab * static_cast<Index>(sizeof(Real))), 16, 512);
}

/// Cross entropy of the output projection, fused and in slices of rows, so that [rows, vocab] is never stored.
/// hidden: [..,D];  weight: [vocab,D];  bias: [vocab] or undefined;  targets: one a row, kNoTarget: not scored.
/// On a recording tape the gradients are computed along with the loss and scaled in backward.
/// Throws InputError where a target is outside the vocabulary.
LossOutput projected_cross_entropy(Tape& tape, const Var& hidden, const Var& weight, const Var& bias,
                                   std::span<const std::int32_t> targets, const LossOptions& options = {});
/// The same with a weight in any number format, for evaluation: the loss is a constant. Throws InternalError where
/// the tape would need its backward form.
LossOutput projected_cross_entropy(Tape& tape, const Var& hidden, const Weight& weight,
                                   std::span<const std::int32_t> targets, const LossOptions& options = {},
                                   const Var& bias = {});

}  // namespace quipu::inline QUIPU_REAL_NS
