#pragma once
#include <functional>
#include <map>
#include <vector>

#include "store/dataset_file.h"
#include "train/row_scorer.h"

namespace quipu {

/// A share of n with its 95 % interval (Wilson's, which stays within 0 .. 1 and needs no minimum of n).
struct Share {
  Index right = 0, n = 0;
  void add(bool is_right) { right += is_right ? 1 : 0, ++n; }
  double value() const { return n > 0 ? static_cast<double>(right) / static_cast<double>(n) : 0; }
  double low() const { return bound(-1); }
  double high() const { return bound(1); }

 private:
  double bound(int side) const;
};

struct RecallOptions {
  Index batch = 0;         ///< examples side by side; 0: as many as make about `chunk_tokens`
  Index max_examples = 0;  ///< the first so many; 0: all
  Index chunk_tokens = 8192;
  Index compare_examples = 16;      ///< examples, evenly over the split, that are also read by the recurrent form
  Index compare_tokens = 16 << 10;  ///< steps that this may take; longer examples are stepped through at their end
  Index longest = 0;                ///< tokens that the model can read; 0: any number
  /// How far back the answer to a scored token stands, in tokens; 0: not known. May be empty.
  std::function<Index(std::span<const std::int32_t> inputs, Index example, Index position)> distance = {};
  std::function<void(Index)> on_progress = {};  ///< examples scored so far
};

/// What a scored task came to.
struct RecallResult {
  Share tokens;    ///< scored tokens
  Share examples;  ///< examples with all their tokens right
  double nll_sum_nats = 0;
  Index longest = 0;  ///< tokens that were read of the longest example
  /// By distance, in bins that double: 1, 2-3, 4-7, ... by the first number of each.
  std::map<Index, Share> by_distance;
  FormComparison forms;
};

/// Throws InternalError where two forms disagree by more than rounding.
void require_agreement(const FormComparison& forms, const std::string& name);

inline namespace QUIPU_REAL_NS {

/// Scores a split of a task, by the parallel form, and compares the recurrent form on a sample. `name` opens messages.
/// Throws InputError for a split that is no task, has no example or nothing scored, for tokens outside the model's
/// vocabulary, and for an example longer than the model can read; InternalError where the two forms disagree by more
/// than rounding.
RecallResult score_recall(const SequenceModel& model, const Split& split, const RecallOptions& options,
                          const std::string& name);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
