#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "train/row_scorer.h"

namespace quipu {

/// A context with several continuations, as tokens. All of them are scored from the same token on, the first in which
/// one of them differs from the context alone; so where a token of a continuation begins inside the context (a token
/// that spans the joint), the end of the context is part of what is compared for all.
struct Continuations {
  std::vector<std::vector<std::int32_t>> tokens;  ///< of the whole texts
  Index scored_from = 0;                          ///< 1 or more
  Index joints = 0;                               ///< continuations with a token that spans the joint
};

/// Where nothing stands before the first scored token, a start is put there: the token that ends documents, or else a
/// newline.
Continuations encode_continuations(const Tokenizer& tokenizer, std::string_view context,
                                   const std::vector<std::string>& continuations);

/// How many tokens a model may read, and what happens to longer texts.
struct TokenLimit {
  Index longest = 0;   ///< of the model; 0: any
  Index truncate = 0;  ///< texts lose tokens at their beginning until they have so many; 0: never

  Index most() const { return truncate > 0 && (longest == 0 || truncate < longest) ? truncate : longest; }
};

/// The row of one continuation. `truncated` becomes true where it lost tokens. Throws InputError with `where` for a
/// text that is longer than the model can read, or whose scored tokens alone are longer than the limit.
ScoredRow row_of(const std::vector<std::int32_t>& tokens, Index scored_from, const TokenLimit& limit,
                 const std::string& where, bool& truncated);

/// Tokens of a prompt that `room` more are to follow.
std::vector<std::int32_t> prompt_of(const Tokenizer& tokenizer, std::string_view text, Index room,
                                    const TokenLimit& limit, const std::string& where, bool& truncated);

/// Rows cut into batches of similar lengths, each of at most about `tokens` tokens: places among `lengths`.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<Index>& lengths, Index tokens);

}  // namespace quipu
