#include "train/completer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

Completer::Completer(const SequenceModel& model, Index chunk_tokens, Index tokens)
    : model_(model), chunk_tokens_(std::max<Index>(1, chunk_tokens)), drawn_(tokens > 0 ? tokens : model.vocab()) {}

/// Reads all prompts but for their last tokens.
void Completer::read(std::span<const std::vector<std::int32_t>> prompts, ModelState& state) const {
  const auto lanes = static_cast<Index>(prompts.size());
  Index longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, static_cast<Index>(prompt.size()) - 1);
  const Index chunk = std::max<Index>(1, chunk_tokens_ / lanes);
  for (Index begin = 0; begin < longest; begin += chunk) {
    const Index length = std::min(chunk, longest - begin);
    Layout layout = Layout::plain(lanes, length);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(lanes * length), 0);
    for (Index b = 0; b < lanes; ++b) {
      const auto& prompt = prompts[static_cast<std::size_t>(b)];
      const Index count = std::clamp<Index>(static_cast<Index>(prompt.size()) - 1 - begin, 0, length);
      layout.lengths.push_back(count);
      if (count > 0) std::copy_n(prompt.begin() + begin, count, tokens.begin() + b * length);
    }
    Tape tape(false);
    model_.forward(tape, tokens, {.layout = layout}, state);
  }
}

std::vector<std::vector<std::int32_t>> Completer::complete(
    std::span<const std::vector<std::int32_t>> prompts, Index most,
    const std::function<bool(std::size_t, std::span<const std::int32_t>)>& goes_on) const {
  ModelState state = model_.initial_state(static_cast<Index>(prompts.size()));
  read(prompts, state);
  std::vector<std::vector<std::int32_t>> completions(prompts.size());
  std::vector<Index> lanes;  // the prompt of each lane that still goes on
  std::vector<std::int32_t> last;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) throw InternalError("prompt {} is empty", i);
    lanes.push_back(static_cast<Index>(i));
    last.push_back(prompts[i].back());
  }
  Scratch scratch;
  for (Index n = 0; n < most && !lanes.empty(); ++n) {
    const Tensor logits({static_cast<Index>(lanes.size()), model_.vocab()});
    model_.step(last, state, scratch, logits.matrix());
    std::vector<Index> open;  // places among the lanes
    std::vector<Index> next_lanes;
    std::vector<std::int32_t> next;
    for (std::size_t b = 0; b < lanes.size(); ++b) {
      const Real* const row = logits.matrix().row(static_cast<Index>(b));
      const Real largest = kernels::max(row, drawn_);
      if (!std::isfinite(largest))
        throw NumericError("prompt {}: a logit is {}; the model's parameters or its state overflow", lanes[b], largest);
      const auto token = static_cast<std::int32_t>(std::find(row, row + drawn_, largest) - row);
      auto& completion = completions[static_cast<std::size_t>(lanes[b])];
      completion.push_back(token);
      if (!goes_on(static_cast<std::size_t>(lanes[b]), completion)) continue;
      open.push_back(static_cast<Index>(b));
      next_lanes.push_back(lanes[b]);
      next.push_back(token);
    }
    if (open.size() < lanes.size() && !open.empty()) state = state.gather(open);
    lanes = std::move(next_lanes);
    last = std::move(next);
  }
  return completions;
}

}  // namespace quipu::inline QUIPU_REAL_NS
