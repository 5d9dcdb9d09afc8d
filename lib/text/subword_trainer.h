#pragma once
#include "text/tokenizer_trainer.h"

namespace quipu {

/// The longest piece that training makes, in bytes.
inline constexpr std::int64_t kMaxPieceBytes = 48;

/// Trains `bpe` or `unigram` (spec.size in its range) with SentencePiece, on the words of word_split.h with their
/// counts: the half million most frequent ones, in bounded memory however long the text is.
std::unique_ptr<TokenizerTrainer> make_subword_trainer(const TokenizerSpec& spec);

}  // namespace quipu
