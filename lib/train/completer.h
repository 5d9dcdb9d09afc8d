#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/sequence_model.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Completes several prompts side by side, each time with the likeliest token: prompts are read by the parallel form,
/// in pieces of about `chunk_tokens` of all of them, and completed by the recurrent one.
class Completer {
 public:
  /// Only the first `tokens` of the model's vocabulary are drawn (0: all).
  Completer(const SequenceModel& model, Index chunk_tokens, Index tokens = 0);

  /// `goes_on` is asked after each token of a lane, with its completion so far. Prompts hold one token or more.
  /// Throws NumericError where a logit is not finite.
  std::vector<std::vector<std::int32_t>> complete(
      std::span<const std::vector<std::int32_t>> prompts, Index most,
      const std::function<bool(std::size_t lane, std::span<const std::int32_t> completion)>& goes_on) const;

 private:
  void read(std::span<const std::vector<std::int32_t>> prompts, ModelState& state) const;

  const SequenceModel& model_;
  Index chunk_tokens_, drawn_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
