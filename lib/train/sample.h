#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/real.h"

namespace quipu {

/// How the next token is chosen from the logits. The filters act in this order: repetition penalty, temperature,
/// top-k, top-p, min-p.
struct SamplingOptions {
  /// Logits are divided by it; 0: the most likely token (of equals, the lowest id), and the filters do not matter.
  /// Above 0 and below 1e-6 it counts as 1e-6.
  double temperature = 0;
  /// The `top_k` most likely tokens stay (of equals, the lower ids); 0: all.
  Index top_k = 0;
  /// Of these, the fewest of the most likely stay whose probabilities sum to `top_p`, at least one; 1: all.
  double top_p = 1;
  /// Of these, the tokens stay that are at least `min_p` times as likely as the most likely one; 0: all.
  double min_p = 0;
  /// Logits of tokens among the last `kRepetitionWindow` of the stream are divided by it where they are above 0, and
  /// multiplied where below (arXiv:1909.05858); 1: none.
  double repetition_penalty = 1;
  std::uint64_t seed = 1;
};

/// Tokens of the stream, prompt included, that count as recent for the repetition penalty.
inline constexpr Index kRepetitionWindow = 256;

/// Throws UsageError for an option outside its range.
void require_valid(const SamplingOptions& options);

inline namespace QUIPU_REAL_NS {

/// Draws tokens. Random numbers are a function of the seed and the position in the stream, so that a rerun, and a run
/// that goes on from a saved state, draw the same. Allocates nothing once it is made; a draw takes time linear in the
/// vocabulary, whatever the filters.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, Index vocab);

  /// The token at `position` of the stream.  logits: [vocab].  Throws NumericError where one is not finite.
  std::int32_t next(std::span<const Real> logits, std::int64_t position);
  /// What `next` draws by, for a temperature above 0: of each token, its probability over that of the most likely one;
  /// 0 where a filter took it out. Valid until the next call.
  std::span<const Real> weights(std::span<const Real> logits);

  /// Takes a token of the stream, read or drawn, into the recent ones. `next` does not do so by itself.
  void observe(std::int32_t token);
  /// The recent tokens, oldest first.
  std::vector<std::int32_t> recent() const;

 private:
  /// A token with its weight; the likelier one stands before, of equals the lower id.
  struct Candidate {
    Real weight;
    std::int32_t token;
    bool stands_before(const Candidate& other) const {
      return weight > other.weight || (weight == other.weight && token < other.token);
    }
  };
  using Iterator = std::vector<Candidate>::iterator;

  void take_penalised(std::span<const Real> logits);
  void keep_top_k();
  void keep_top_p();

  SamplingOptions options_;
  std::vector<Real> weights_;          // [vocab]: penalised logits, then weights
  std::vector<Candidate> candidates_;  // in no order
  std::vector<std::int32_t> recent_;   // a ring
  std::size_t oldest_ = 0;
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
