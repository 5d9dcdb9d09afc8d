#include "train/validation.h"

#include <algorithm>

#include "base/stop.h"
#include "train/batcher.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// Reads a batch in segments of `length` columns.
void score(const LanguageModel& model, const Batch& batch, Index length, bool keep_state, ModelState& state,
           ValidationResult& sum) {
  for (Index begin = 0, all = batch.layout.length; begin < all; begin += length) {
    const Batch part = columns_of(batch, begin, std::min(all, begin + length));
    Tape tape(false);
    const Context context{.layout = part.layout, .keep_state = keep_state || begin + length < all};
    const Var hidden = model.forward(tape, part.tokens, context, state);
    const LossOutput out = model.loss(tape, hidden, part.targets, {});
    sum.nll_sum_nats += out.nll_sum_nats;
    sum.scored += out.tokens;
  }
}

/// Windows (or rows) `chosen` of them evenly out of `all`.
struct Windows {
  Index all, chosen;
  Index operator[](Index i) const { return i * all / chosen; }
};

Windows windows_of(Index all, Index length, Index max_tokens) {
  const Index limit = max_tokens == 0 ? all : std::max<Index>(1, max_tokens / length);
  return {all, std::min(all, limit)};
}

void put_row(const Split& split, Index row, Index lane, Batch& batch) {
  const auto length = static_cast<std::size_t>(split.length()), begin = static_cast<std::size_t>(lane) * length;
  split.read_examples(row, {batch.tokens.data() + begin, length}, {batch.targets.data() + begin, length});
  batch.layout.starts[static_cast<std::size_t>(lane)].push_back(0);
  batch.layout.lengths[static_cast<std::size_t>(lane)] = split.length();
}

std::optional<ValidationResult> validate_windows(const LanguageModel& model, const Split& split,
                                                 const ValidationOptions& options) {
  const Index length = split.is_scored() ? split.length() : options.segments * options.length;
  const Index all = split.is_scored() ? split.examples() : (split.tokens() + length - 1) / length;
  const Windows windows = windows_of(all, length, options.max_tokens);
  ValidationResult sum;
  Batch batch;
  for (Index first = 0; first < windows.chosen; first += options.batch) {
    if (stop_requested()) return std::nullopt;
    const Index lanes = std::min(options.batch, windows.chosen - first);
    batch.clear(lanes, length);
    for (Index lane = 0; lane < lanes; ++lane) {
      const Index window = windows[first + lane], begin = window * length;
      if (split.is_scored())
        put_row(split, window, lane, batch);
      else
        put_tokens(split, begin, std::min(length, split.tokens() - begin), true, lane, 0, batch);
    }
    ModelState state = model.initial_state(lanes);
    score(model, batch, options.length, false, state, sum);
  }
  return sum;
}

std::optional<ValidationResult> validate_shares(const LanguageModel& model, const Split& split,
                                                const ValidationOptions& options) {
  const Index tokens = options.max_tokens == 0 ? split.tokens() : std::min(split.tokens(), options.max_tokens);
  const Index lanes = std::clamp<Index>(tokens / (options.length + 1), 1, options.batch);
  const Index share = (tokens + lanes - 1) / lanes;
  ModelState state = model.initial_state(lanes);
  ValidationResult sum;
  Batch batch;
  for (Index at = 0; at < share; at += options.length) {
    if (stop_requested()) return std::nullopt;
    batch.clear(lanes, options.length);
    for (Index lane = 0; lane < lanes; ++lane) {
      const Index begin = lane * share + at, end = std::min({begin + options.length, (lane + 1) * share, tokens});
      put_tokens(split, begin, end - begin, at == 0, lane, 0, batch);
    }
    score(model, batch, options.length, true, state, sum);
  }
  return sum;
}

}  // namespace

std::optional<ValidationResult> validate(const LanguageModel& model, const Split& split,
                                         const ValidationOptions& options) {
  const bool carry = options.carry && !split.is_scored();
  auto result = carry ? validate_shares(model, split, options) : validate_windows(model, split, options);
  if (result && result->scored == 0)
    throw InputError("split '{}': none of its {} tokens is scored; give a larger one, or none", split.name(),
                     split.tokens());
  return result;
}

}  // namespace quipu::inline QUIPU_REAL_NS
