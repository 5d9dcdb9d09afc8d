#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/sequence_model.h"

namespace quipu {

/// Tokens to read, and what is to be predicted at some of them. Nothing behind the last target is read.
struct ScoredRow {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;  ///< as many; -1: not scored

  /// Inputs up to the last target.
  Index length() const;
};

/// What a model said at one scored token.
struct TokenOutcome {
  Index row;
  Index position;
  std::int32_t target, predicted;  ///< predicted: the likeliest token, the first of several
  double nll_nats;                 ///< of the target
  bool right() const { return target == predicted; }
};

/// The parallel and the recurrent form of a model, side by side on the same scored tokens.
struct FormComparison {
  Index rows = 0, tokens = 0;  ///< compared
  Index right_parallel = 0, right_recurrent = 0;
  Index differing = 0;          ///< tokens where the two predict something else
  Index disagreeing = 0;        ///< those of them where the logits are further apart than rounding explains
  double logit_difference = 0;  ///< the largest one between two logits, over the largest logit there (without sign)

  /// Logits that differ by less than this share of the largest one are the same but for rounding.
  static constexpr double kRounding = 1e-3;
};

inline namespace QUIPU_REAL_NS {

/// Asks a model for its logits where rows are scored, and nowhere else. Throws NumericError where one is not finite.
class RowScorer {
 public:
  /// The model reads about `chunk_tokens` of all rows at a time, so that rows may be of any length.
  explicit RowScorer(const SequenceModel& model, Index chunk_tokens = 8192);

  /// Called with the number of tokens that were read since the last call; may throw to end the work.
  std::function<void(Index)> on_tokens;

  /// Parallel form, all rows side by side; outcomes by row and position.
  std::vector<TokenOutcome> score(std::span<const ScoredRow> rows) const;

  /// Both forms. The recurrent one steps through the last `steps` tokens of each row up to its last target, behind a
  /// state that the parallel form made of those before; targets there are compared.
  FormComparison compare(std::span<const ScoredRow> rows, Index steps) const;

 private:
  struct Hidden;
  Hidden read(std::span<const ScoredRow> rows, std::span<const Index> first, std::span<const Index> last, bool keep,
              ModelState& state) const;
  void compare_step(std::span<const ScoredRow> rows, const Hidden& hidden, std::span<const Index> positions,
                    Matrix logits, FormComparison& result) const;

  const SequenceModel& model_;
  Index chunk_tokens_;
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
