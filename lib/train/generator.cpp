#include "train/generator.h"

#include <algorithm>

#include "base/error.h"

namespace quipu::inline QUIPU_REAL_NS {

Generator::Generator(const SequenceModel& model, const SamplingOptions& options, Index chunk, Index tokens)
    : model_(model),
      drawn_(static_cast<std::size_t>(tokens > 0 ? tokens : model.vocab())),
      sampler_(options, static_cast<Index>(drawn_)),
      chunk_(static_cast<std::size_t>(chunk)),
      memory_(model.initial_state(1)),
      logits_(static_cast<std::size_t>(model.vocab())) {
  if (chunk < 1) throw InternalError("chunks of {} tokens", chunk);
  waiting_.reserve(chunk_);
}

void Generator::resume(StreamState state) {
  memory_ = std::move(state.memory);
  waiting_.assign(state.waiting.begin(), state.waiting.end());
  tokens_ = state.tokens;
  for (const std::int32_t token : state.recent) sampler_.observe(token);
}

void Generator::read(std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) sampler_.observe(token);
  tokens_ += static_cast<std::int64_t>(tokens.size());
  while (!tokens.empty()) {
    if (waiting_.size() == chunk_) read_waiting();
    const std::size_t taken = std::min(chunk_ - waiting_.size(), tokens.size());
    waiting_.insert(waiting_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(taken));
    tokens = tokens.subspan(taken);
  }
}

void Generator::read_waiting() {
  Tape tape(false);
  const Layout layout = Layout::plain(1, static_cast<Index>(waiting_.size()));
  ModelState next = memory_;
  model_.forward(tape, waiting_, Context{.layout = layout}, next);
  memory_.take(std::move(next));
  waiting_.clear();
}

void Generator::end_piece() {
  if (waiting_.size() < 2) return;
  const std::int32_t last = waiting_.back();
  waiting_.pop_back();
  read_waiting();
  waiting_.push_back(last);
}

std::int32_t Generator::next() {
  if (waiting_.empty()) throw InternalError("nothing to go on from: no token was read");
  end_piece();
  const auto vocab = static_cast<Index>(logits_.size());
  model_.step(waiting_, memory_, scratch_, {logits_.data(), 1, vocab, vocab});
  const std::int32_t token = sampler_.next(std::span(logits_).first(drawn_), tokens_);
  sampler_.observe(token);
  waiting_.front() = token;
  ++tokens_;
  return token;
}

StreamState Generator::state_ahead() const {
  Generator ahead(*this);
  return ahead.state();
}

StreamState Generator::state() {
  end_piece();
  return {memory_, waiting_, tokens_, sampler_.recent()};
}

}  // namespace quipu::inline QUIPU_REAL_NS
