#pragma once
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "models/sequence_model.h"
#include "store/dataset_file.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "train/protocol.h"
#include "train/segment_batch.h"

namespace quipu {

/// The score of one token.
struct TokenScore {
  Index position;  ///< among all tokens, from 0; those of a prefix do not count
  Index context;   ///< tokens that it was predicted from, 1 or more; those of a prefix count
  std::int32_t token;
  double nll_nats;
};

struct EvalOptions {
  Protocol protocol;
  /// Read before every document and not scored; then a document's first token is scored like any other.
  std::vector<std::int32_t> prefix;
  /// Of the tokens: says how many bytes and words an unscored token holds. Null: they are not counted.
  const Tokenizer* tokenizer = nullptr;
  /// Tokens that the model reads at a time; a window may be longer.
  Index batch_tokens = 4096;
  /// About how many lanes they are laid out in, where there are that many documents or windows.
  Index lanes = 8;
  /// Called for each scored token, and at the end of each document, in their order.
  std::function<void(const TokenScore&)> on_token;
  std::function<void(const DocumentScore&)> on_document;
  /// Called now and then with the number of tokens taken so far. May throw to end the evaluation.
  std::function<void(Index)> on_progress;
};

/// What an evaluation came to. Sums are exact over the scored tokens; figures without tokens, bytes or words are NaN.
struct EvalResult {
  double nll_sum_nats = 0;
  Index tokens = 0;                  ///< scored
  Index documents = 0;               ///< all
  Index unscored_tokens = 0;         ///< first tokens of documents
  std::uint64_t unscored_bytes = 0;  ///< their bytes, and the words that lie in them as a whole
  std::uint64_t unscored_words = 0;
  std::uint64_t bytes = 0;  ///< of the scored text; 0 until `count_text`
  std::uint64_t words = 0;

  /// Sets bytes and words from those of the whole text.
  void count_text(std::uint64_t all_bytes, std::uint64_t all_words) {
    bytes = all_bytes - std::min(all_bytes, unscored_bytes);
    words = all_words - std::min(all_words, unscored_words);
  }
  double nats_per_token() const { return ratio(nll_sum_nats, static_cast<double>(tokens)); }
  double perplexity_per_token() const { return std::exp(nats_per_token()); }
  double perplexity_per_word() const { return std::exp(ratio(nll_sum_nats, static_cast<double>(words))); }
  double bits_per_byte() const { return ratio(nll_sum_nats, static_cast<double>(bytes) * std::log(2.0)); }

 private:
  static double ratio(double a, double b) { return b > 0 ? a / b : std::numeric_limits<double>::quiet_NaN(); }
};

inline namespace QUIPU_REAL_NS {

/// Scores a stream of tokens, cut into documents, as it comes: at constant memory (for a model of fixed memory), many
/// documents or windows at a time. The same tokens give the same scores however they are handed over, but for the
/// rounding of products of other shapes.
class Evaluator {
 public:
  Evaluator(const SequenceModel& model, EvalOptions options);

  /// More tokens of the open document. Throws InputError where one is outside the vocabulary, or where the document is
  /// longer than the model can read; NumericError where a score is not finite.
  void add(std::span<const std::int32_t> tokens);
  /// Ends the open document, which may be empty.
  void end_document();
  /// Scores all documents that have ended; of an open one, some tokens may have to wait.
  void flush() { run(); }
  /// Tokens after the last end are one more document. Nothing may be added afterwards.
  EvalResult finish();

 private:
  Index room() const { return options_.batch_tokens - batch_inputs_; }
  void open_document();
  void cut_stream(bool ended);
  void cut_windows(bool ended);
  void push(Index length, bool keep);
  void drop(Index count);
  DocumentScore document_facts() const;
  void run();
  void deliver(const Packing& packing, std::span<const double> nll_nats);
  void end(const DocumentScore& facts);

  const SequenceModel& model_;
  EvalOptions options_;
  EvalResult result_;
  Index read_ = 0;  // tokens taken
  // The open document. Its tokens are counted with the prefix.
  bool open_ = false;
  Index begin_ = 0;                   // its first token's place in the stream
  Index length_ = 0;                  // tokens so far
  std::vector<std::int32_t> head_;    // its first two tokens, without the prefix
  std::vector<std::int32_t> window_;  // tokens that are still needed, ..
  Index base_ = 0;                    // .. from this one on
  Index next_ = 0;                    // the next token to be scored
  // The batch to come.
  std::vector<Segment> segments_;
  std::vector<std::int32_t> tokens_;
  Index batch_inputs_ = 0;
  ModelState carried_;  // of the document that the last batch left open
  DocumentScore sums_;  // scores of the document being delivered
  Index documents_ = 0;
};

/// Evaluates a split from its first token to its last, or the first `max_tokens` of it (then bytes and words are not
/// known). Throws InputError for a scored task.
EvalResult evaluate(const SequenceModel& model, const Split& split, const EvalOptions& options,
                    Index max_tokens = std::numeric_limits<Index>::max());

/// Evaluates a text from where `reader` stands to its end, in bounded memory.
EvalResult evaluate_text(const SequenceModel& model, const Tokenizer& tokenizer, TextReader& reader,
                         DocumentRule documents, const EvalOptions& options);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
