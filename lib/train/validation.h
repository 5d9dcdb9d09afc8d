#pragma once
#include <optional>

#include "models/language_model.h"
#include "store/dataset_file.h"
#include "train/train_options.h"

namespace quipu::inline QUIPU_REAL_NS {

struct ValidationOptions {
  Index batch = 16;
  Index length = kUsualLength;  ///< of a segment
  Index segments = 1;           ///< of a window; they are read one after another
  bool carry = false;           ///< lanes read shares of the split, their state goes on
  Index max_tokens = 0;         ///< read about as many, in windows evenly over the split; 0: all
};

struct ValidationResult {
  double nll_sum_nats = 0;
  Index scored = 0;
  double nats_per_token() const { return nll_sum_nats / static_cast<double>(scored > 0 ? scored : 1); }
};

/// How well a model predicts a split while it trains: windows of `segments` times `length` tokens that each start
/// afresh, or with `carry` equal shares of the split read in order. Nothing of the model changes. The same split,
/// options and weights give the same result. Returns nothing where a stop was asked for before the end. Throws
/// InputError where no token of the split is scored.
std::optional<ValidationResult> validate(const LanguageModel& model, const Split& split,
                                         const ValidationOptions& options);

}  // namespace quipu::inline QUIPU_REAL_NS
