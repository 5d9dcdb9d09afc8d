#include "train/line_scorer.h"

namespace quipu {
namespace {

constexpr std::size_t kEncodeBytes = 1 << 16;

double ratio(double a, double b) { return b > 0 ? a / b : std::numeric_limits<double>::quiet_NaN(); }

}  // namespace

double LineScore::bits_per_byte() const {
  return ratio(score.nll_nats, static_cast<double>(score.tokens > 0 ? bytes : 0) * std::log(2.0));
}

double LineScore::perplexity() const { return std::exp(ratio(score.nll_nats, static_cast<double>(score.tokens))); }

inline namespace QUIPU_REAL_NS {

LineScorer::LineScorer(const SequenceModel& model, const Tokenizer& tokenizer, EvalOptions options,
                       std::function<void(const LineScore&)> on_line)
    : tokenizer_(tokenizer),
      on_line_(std::move(on_line)),
      splitter_(DocumentRule::kLine, *this),
      evaluator_(model, [&] {
        options.tokenizer = &tokenizer;
        options.on_document = [this](const DocumentScore& score) { answer(score); };
        return std::move(options);
      }()) {}

void LineScorer::add(std::string_view block) {
  splitter_.add(block);
  evaluator_.flush();
}

EvalResult LineScorer::finish() {
  splitter_.end_file();
  EvalResult result = evaluator_.finish();
  result.count_text(counter_.bytes(), counter_.words());
  return result;
}

void LineScorer::text(std::string_view block) {
  counter_.text(block);
  line_bytes_ += block.size();
  while (!block.empty()) {
    const std::string_view part = block.substr(0, kEncodeBytes);
    pending_ += part;
    block.remove_prefix(part.size());
    if (pending_.size() >= kEncodeBytes) encode(false);
  }
}

void LineScorer::end_document() {
  counter_.end_document();
  encode(true);
  waiting_.push_back(line_bytes_);
  line_bytes_ = 0;
  evaluator_.end_document();
}

void LineScorer::encode(bool complete) {
  tokens_.clear();
  const std::size_t taken = tokenizer_.encode_some(pending_, {!inside_, complete}, tokens_);
  pending_.erase(0, taken);
  inside_ = !complete && (inside_ || taken > 0);
  if (complete && tokenizer_.end_of_document()) tokens_.push_back(*tokenizer_.end_of_document());
  evaluator_.add(tokens_);
}

void LineScorer::answer(const DocumentScore& score) {
  const std::uint64_t bytes = waiting_.front();
  waiting_.pop_front();
  on_line_({score.document + 1, score, bytes - std::min(bytes, score.unscored_bytes)});
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
