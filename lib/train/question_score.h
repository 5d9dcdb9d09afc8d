#pragma once
#include <functional>
#include <string>

#include "text/recall_lines.h"
#include "train/question_rows.h"
#include "train/recall_score.h"

namespace quipu {

struct QuestionOptions {
  std::string prompt = {};      ///< template of what stands before a choice or an answer
  TokenLimit limit = {};        ///< of tokens read
  Index batch_tokens = 8192;    ///< read at a time
  Index answer_tokens = 48;     ///< an answer's longest completion
  std::string stop = "\n";      ///< text that ends a completion; empty: none
  Index compare_examples = 16;  ///< lines that the recurrent form reads, too
  Index compare_tokens = 16 << 10;
  std::function<void(Index)> on_progress = {};  ///< lines so far
};

/// What a file of questions came to. Which figures are set follows from its kind.
struct QuestionResult {
  Index lines = 0, truncated = 0;  ///< all, and those that lost tokens at their beginning
  double chance = 0;
  FormComparison forms;
  Index joints = 0;  ///< continuations with a token that spans the joint with their context
  Index longest = 0;
  /// Choices: the likeliest one, by its log likelihood as it is, a token, and a byte.
  Share choices, choices_by_token, choices_by_byte;
  /// Answers: the completion holds one, or is one; with blanks (and, where equal, SQuAD's marks) normalized, and as it
  /// stands. `supported`: lines whose context, as it was read, holds an answer.
  Share contains, contains_as_is, exact, exact_as_is, supported;
  double f1_sum = 0;
  /// Last words: all tokens right, and the loss of a word.
  Share words;
  double nll_sum_nats = 0;
  Index tokens = 0;  ///< scored

  /// The share that the file's accuracy is.
  const Share& accuracy(LineKind kind) const {
    return kind == LineKind::choices ? choices : kind == LineKind::answers ? contains : words;
  }
};

inline namespace QUIPU_REAL_NS {

/// Scores a file of questions. Throws InputError, naming file and line, for a text that is longer than the model can
/// read; InternalError where parallel and recurrent form disagree.
QuestionResult score_questions(const SequenceModel& model, const Tokenizer& tokenizer, const RecallLines& lines,
                               const QuestionOptions& options);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
