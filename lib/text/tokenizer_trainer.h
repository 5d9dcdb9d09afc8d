#pragma once
#include <span>

#include "text/document_sink.h"
#include "text/tokenizer.h"

namespace quipu {

/// What tokenizer to make.
struct TokenizerSpec {
  std::string kind;       ///< `bytes`, `words`, `bpe` or `unigram`
  std::int64_t size = 0;  ///< vocabulary; 0: not given (`bytes`, and `words` with every word of the text)
};

/// The sizes that `bpe:N` and `unigram:N` take.
inline constexpr std::int64_t kMinSubwordSize = 257;
inline constexpr std::int64_t kMaxSubwordSize = 1'000'000;
/// The sizes that `words:N` takes.
inline constexpr std::int64_t kMinWordsSize = 3;
inline constexpr std::int64_t kMaxWordsSize = 100'000'000;

/// Reads `bytes`, `words`, `words:N`, `bpe:N` or `unigram:N`, N in decimal digits. UsageError where it is none of
/// them; the size is checked by make_trainer.
TokenizerSpec parse_tokenizer_spec(std::string_view text);

/// Learns a tokenizer from the training text: a sink for its documents, then finish(), once.
class TokenizerTrainer : public DocumentSink {
 public:
  /// Whether the text matters (not for `bytes`: reading it can be saved).
  virtual bool needs_text() const { return true; }

  /// Makes the tokenizer; the same text in the same order always makes the same one, on any number of threads.
  /// `bpe` and `unigram` have exactly the size asked for: UsageError, with the largest size, where the text does not
  /// have that many pieces. `words:N` has N or, where the text has fewer, all words. InputError where the text had
  /// no word at all.
  virtual std::unique_ptr<Tokenizer> finish() = 0;
};

/// UsageError where the size is outside its range, is missing, or is given to `bytes`.
std::unique_ptr<TokenizerTrainer> make_trainer(const TokenizerSpec& spec);

}  // namespace quipu
