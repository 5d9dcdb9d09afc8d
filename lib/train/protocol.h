#pragma once
#include <string>

#include "base/real.h"

namespace quipu {

/// Which context each token is predicted from. Under every protocol the same tokens are scored, each exactly once: all
/// tokens of a document but its first, which has nothing before it (with a prefix, that one too). Documents never see
/// each other. So figures compare across protocols, and across tokenizers where they are per byte or per word.
struct Protocol {
  /// Tokens that a window reads, each window from a fresh state; 0: the state is carried over the whole document.
  Index window = 0;
  /// By how many tokens windows advance: the tokens that are new in a window are scored, in the first one all are.
  Index stride = 0;
  /// As it was written: "stream", "blocks:64", "slide:512:128", "last:256/512".
  std::string name = "stream";

  bool is_stream() const { return window == 0; }
  /// The context of a scored token, in words: "257 to 512 tokens (fewer at the start of a document)".
  std::string context() const;
};

/// stream        all tokens of the document before the token
/// blocks:W      disjoint windows: inputs 0 .. W-1 predict tokens 1 .. W, inputs W .. 2W-1 the next W, and so on
/// slide:W:S     windows of W inputs advanced by S: from the second one on, the S last predictions count
/// last:N/W      the same as slide:W:N, by the name of the literature ("the last 256 of 512")
/// Throws UsageError for anything else, with a stride above the window too.
Protocol parse_protocol(const std::string& text);

/// blocks:W.
Protocol block_protocol(Index window);

}  // namespace quipu
