#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scan/layout.h"

namespace quipu {

/// A document that ended: what was scored of it, and what was not.
struct DocumentScore {
  Index document = 0;  ///< 0, 1, ..
  Index tokens = 0;    ///< scored
  double nll_nats = 0;
  Index unscored_tokens = 0;         ///< the first one, where there is no prefix
  std::uint64_t unscored_bytes = 0;  ///< of the text: those of the unscored token
  std::uint64_t unscored_words = 0;  ///< words that lie in the unscored token as a whole
};

/// A stretch of one document that the model reads in one go.
struct Segment {
  Index begin;         ///< of its tokens in the batch: `length` inputs and one more, the last one's target
  Index length;        ///< inputs; 0: nothing is read, only the document ends
  Index first_scored;  ///< the first input whose prediction is scored
  Index context;       ///< tokens that the state has seen before the first input
  Index position;      ///< of the first input's target in the whole stream of tokens
  bool fresh;          ///< nothing from before is seen
  bool keep;           ///< the document goes on: the state is needed
  std::optional<DocumentScore> end;  ///< the document ends here: its facts, without the scores
};

/// Where segments lie in a batch of lanes: segment i at (lane, column).
struct Packing {
  struct Place {
    Index lane;
    Index column;
  };
  Layout layout;
  std::vector<Place> places;
};

/// Puts segments one after another into about `lanes` lanes of equal length, in their order. A first segment that is
/// not fresh begins lane 0; the last segment is the end of the last lane.
Packing pack_segments(std::span<const Segment> segments, Index lanes);

}  // namespace quipu
