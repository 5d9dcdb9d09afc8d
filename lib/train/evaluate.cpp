#include "train/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "text/blank.h"
#include "text/corpus_encoder.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kReadTokens = 1 << 16;

/// Words that end inside the first `size` bytes of `text`: their last byte is there, and a blank or nothing follows.
std::uint64_t words_ending_in(std::string_view text, std::size_t size) {
  std::uint64_t words = 0;
  for (std::size_t i = 0; i < size; ++i)
    words += !is_blank(text[i]) && (i + 1 == text.size() || is_blank(text[i + 1])) ? 1 : 0;
  return words;
}

}  // namespace

Evaluator::Evaluator(const SequenceModel& model, EvalOptions options) : model_(model), options_(std::move(options)) {
  options_.batch_tokens = std::max<Index>(options_.batch_tokens, 1);
  options_.lanes = std::max<Index>(options_.lanes, 1);
}

void Evaluator::open_document() {
  open_ = true;
  begin_ = read_;
  head_.clear();
  window_ = options_.prefix;
  length_ = static_cast<Index>(window_.size());
  base_ = 0;
  next_ = std::max<Index>(1, length_);
}

void Evaluator::add(std::span<const std::int32_t> tokens) {
  while (!tokens.empty()) {
    if (!open_) open_document();
    const auto piece = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(options_.batch_tokens)));
    tokens = tokens.subspan(piece.size());
    for (std::size_t i = 0; i < piece.size() && head_.size() < 2; ++i) head_.push_back(piece[i]);
    window_.insert(window_.end(), piece.begin(), piece.end());
    length_ += static_cast<Index>(piece.size());
    read_ += static_cast<Index>(piece.size());
    options_.protocol.is_stream() ? cut_stream(false) : cut_windows(false);
  }
}

void Evaluator::end_document() {
  if (!open_) open_document();
  open_ = false;
  // A prefix alone has nothing to score.
  if (!head_.empty()) options_.protocol.is_stream() ? cut_stream(true) : cut_windows(true);
  if (!segments_.empty() && !segments_.back().end) {
    segments_.back().end = document_facts();  // it can only be a piece of this document
  } else {
    segments_.push_back({.begin = static_cast<Index>(tokens_.size()),
                         .length = 0,
                         .first_scored = 0,
                         .context = 0,
                         .position = read_,
                         .fresh = true,
                         .keep = false,
                         .end = document_facts()});
  }
  ++documents_;
  if (room() <= 0 || static_cast<Index>(segments_.size()) >= options_.batch_tokens) run();
}

/// Pieces of the document as long as the batch has room; the last token waits for the one that it predicts.
void Evaluator::cut_stream(bool ended) {
  for (;;) {
    const Index inputs = static_cast<Index>(window_.size()) - 1;
    const Index length = std::min(inputs, room());
    if (length < 1 || (!ended && length < room())) return;
    const bool keep = !(ended && length == inputs);
    push(length, keep);
    drop(length);
    if (room() <= 0) run();
  }
}

void Evaluator::cut_windows(bool ended) {
  const Protocol& protocol = options_.protocol;
  for (;;) {
    const Index inputs = std::min(static_cast<Index>(window_.size()) - 1, protocol.window);
    const bool whole = inputs == protocol.window;
    if (inputs < 1 || (!whole && !ended)) return;
    if (base_ + inputs >= next_) push(inputs, false);
    if (!whole) return;
    drop(protocol.stride);
    if (room() < protocol.window) run();
  }
}

void Evaluator::push(Index length, bool keep) {
  const bool fresh = !options_.protocol.is_stream() || base_ == 0;
  segments_.push_back({.begin = static_cast<Index>(tokens_.size()),
                       .length = length,
                       .first_scored = std::min(length, next_ - base_ - 1),
                       .context = options_.protocol.is_stream() ? base_ : 0,
                       .position = begin_ + base_ + 1 - static_cast<Index>(options_.prefix.size()),
                       .fresh = fresh,
                       .keep = keep,
                       .end = std::nullopt});
  tokens_.insert(tokens_.end(), window_.begin(), window_.begin() + length + 1);
  batch_inputs_ += length;
  next_ = std::max(next_, base_ + length + 1);
}

void Evaluator::drop(Index count) {
  window_.erase(window_.begin(), window_.begin() + count);
  base_ += count;
}

DocumentScore Evaluator::document_facts() const {
  DocumentScore facts;
  facts.document = documents_;
  if (head_.empty() || !options_.prefix.empty()) return facts;
  facts.unscored_tokens = 1;
  if (options_.tokenizer == nullptr) return facts;
  std::string text;
  options_.tokenizer->append_text(-1, head_[0], text);
  const std::size_t size = text.size();
  if (head_.size() > 1) options_.tokenizer->append_text(head_[0], head_[1], text);
  facts.unscored_bytes = size;
  facts.unscored_words = words_ending_in(text, size);
  return facts;
}

void Evaluator::run() {
  if (segments_.empty()) return;
  std::vector<double> nll_nats;
  const Packing packing = pack_segments(segments_, options_.lanes);
  const Layout& layout = packing.layout;
  if (batch_inputs_ > 0) {
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(layout.batch * layout.length), 0);
    std::vector<std::int32_t> targets(inputs.size(), kNoTarget);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      if (segment.length == 0) continue;
      const auto [lane, column] = packing.places[i];
      const auto from = tokens_.begin() + segment.begin;
      const Index at = lane * layout.length + column;
      std::copy_n(from, segment.length, inputs.begin() + at);
      std::copy(from + segment.first_scored + 1, from + segment.length + 1,
                targets.begin() + at + segment.first_scored);
    }
    // The lanes behind the first start anew, whatever state they are given.
    const bool goes_on = !segments_.front().fresh;
    ModelState state = !goes_on ? model_.initial_state(layout.batch)
                       : layout.batch == 1
                           ? carried_
                           : carried_.gather(std::vector<Index>(static_cast<std::size_t>(layout.batch), 0));
    Tape tape(false);
    const bool keep = segments_.back().keep;
    const Var hidden = model_.forward(tape, inputs, {.layout = layout, .keep_state = keep}, state);
    nll_nats = model_.loss(tape, hidden, targets).nll_nats;
    if (keep) carried_.take(layout.batch > 1 ? state.gather(std::vector<Index>{layout.batch - 1}) : std::move(state));
  }
  deliver(packing, nll_nats);
}

void Evaluator::deliver(const Packing& packing, std::span<const double> nll_nats) {
  std::vector<Segment> segments;
  std::vector<std::int32_t> tokens;
  segments.swap(segments_);
  tokens.swap(tokens_);
  batch_inputs_ = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    const auto [lane, column] = packing.places[i];
    for (Index t = segment.first_scored; t < segment.length; ++t) {
      const TokenScore score{segment.position + t, segment.context + t + 1,
                             tokens[static_cast<std::size_t>(segment.begin + t + 1)],
                             nll_nats[static_cast<std::size_t>(lane * packing.layout.length + column + t)]};
      if (!std::isfinite(score.nll_nats))
        throw NumericError("token {}: its loss is {}; the model's parameters or its state overflow", score.position,
                           score.nll_nats);
      sums_.nll_nats += score.nll_nats;
      ++sums_.tokens;
      if (options_.on_token) options_.on_token(score);
    }
    if (segment.end) end(*segment.end);
  }
  if (options_.on_progress) options_.on_progress(read_);
}

void Evaluator::end(const DocumentScore& facts) {
  DocumentScore score = facts;
  score.tokens = sums_.tokens;
  score.nll_nats = sums_.nll_nats;
  sums_ = {};
  result_.nll_sum_nats += score.nll_nats;
  result_.tokens += score.tokens;
  result_.documents += 1;
  result_.unscored_tokens += score.unscored_tokens;
  result_.unscored_bytes += score.unscored_bytes;
  result_.unscored_words += score.unscored_words;
  if (options_.on_document) options_.on_document(score);
}

EvalResult Evaluator::finish() {
  if (open_) end_document();
  run();
  return result_;
}

EvalResult evaluate(const SequenceModel& model, const Split& split, const EvalOptions& options, Index max_tokens) {
  if (split.is_scored())
    throw InputError("{}: holds examples of a scored task, not a text; score it with recall-bench run", split.name());
  Evaluator evaluator(model, options);
  const Index total = std::min(split.tokens(), max_tokens);
  std::vector<std::int32_t> tokens;
  for (Index first = 0; first < total; first += kReadTokens) {
    const Index last = std::min(total, first + kReadTokens);
    tokens.resize(static_cast<std::size_t>(last - first));
    split.read(first, tokens);
    Index at = first;
    for (const Index start : split.document_starts(first, last)) {
      evaluator.add(
          std::span(tokens).subspan(static_cast<std::size_t>(at - first), static_cast<std::size_t>(start - at)));
      if (start > 0) evaluator.end_document();
      at = start;
    }
    evaluator.add(std::span(tokens).subspan(static_cast<std::size_t>(at - first)));
  }
  EvalResult result = evaluator.finish();
  if (total == split.tokens()) result.count_text(split.bytes(), split.words());
  return result;
}

EvalResult evaluate_text(const SequenceModel& model, const Tokenizer& tokenizer, TextReader& reader,
                         DocumentRule documents, const EvalOptions& options) {
  Evaluator evaluator(model, options);
  std::uint64_t read = 0;
  CorpusEncoder encoder(tokenizer, [&](std::span<const std::int32_t> tokens, std::span<const std::uint64_t> ends) {
    std::uint64_t at = read;
    for (const std::uint64_t end : ends) {
      evaluator.add(tokens.subspan(at - read, end - at));
      evaluator.end_document();
      at = end;
    }
    evaluator.add(tokens.subspan(at - read));
    read += tokens.size();
  });
  read_documents(reader, documents, encoder);
  const SplitSummary text = encoder.finish();
  EvalResult result = evaluator.finish();
  result.count_text(text.bytes, text.words);
  return result;
}

}  // namespace quipu::inline QUIPU_REAL_NS
