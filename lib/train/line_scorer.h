#pragma once
#include <deque>
#include <functional>
#include <string>

#include "text/corpus.h"
#include "train/evaluate.h"

namespace quipu {

/// The score of a line of text, its newline included.
struct LineScore {
  Index line;  ///< from 1
  DocumentScore score;
  std::uint64_t bytes;  ///< of the scored text
  double bits_per_byte() const;
  double perplexity() const;  ///< per token
};

inline namespace QUIPU_REAL_NS {

/// Scores an endless text line by line, each line a document, at constant memory (a line may be of any length).
class LineScorer final : private DocumentSink {
 public:
  /// `options.on_document` is taken by the scorer. `on_line` is called for each line, in order.
  LineScorer(const SequenceModel& model, const Tokenizer& tokenizer, EvalOptions options,
             std::function<void(const LineScore&)> on_line);

  /// More text; answers all lines that it ends.
  void add(std::string_view block);
  /// Answers the last line, where it has no newline.
  EvalResult finish();

 private:
  void text(std::string_view block) override;
  void end_document() override;
  void encode(bool complete);
  void answer(const DocumentScore& score);

  const Tokenizer& tokenizer_;
  std::function<void(const LineScore&)> on_line_;
  TextCounter counter_;
  DocumentSplitter splitter_;
  std::string pending_;  // text of the line that is not encoded yet
  bool inside_ = false;  // some of the line is encoded
  std::vector<std::int32_t> tokens_;
  std::uint64_t line_bytes_ = 0;
  std::deque<std::uint64_t> waiting_;  // bytes of lines that ended and are not answered yet
  Evaluator evaluator_;
};

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
