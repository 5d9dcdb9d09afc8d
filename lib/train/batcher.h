#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "scan/layout.h"
#include "store/dataset_file.h"
#include "train/permutation.h"

namespace quipu {

/// B lanes of T tokens, and what each token should predict (-1: nothing).
struct Batch {
  std::vector<std::int32_t> tokens;   ///< [B,T]
  std::vector<std::int32_t> targets;  ///< [B,T]
  Layout layout;
  Index scored = 0;  ///< targets that are not -1

  /// Room for B lanes of T tokens: all padding, nothing scored.
  void clear(Index batch, Index length);
};

/// Columns [begin, end) of a batch.
Batch columns_of(const Batch& batch, Index begin, Index end);

/// Puts tokens first .. first + count - 1 of a stream at places `at`, `at` + 1, ... of a lane, each with the next token
/// of the stream as its target; documents start where the stream's do, and at `at` where `fresh`. The first token of a
/// document is no target: nothing before it belongs to it. Extends the lane's length.
void put_tokens(const Split& split, Index first, Index count, bool fresh, Index lane, Index at, Batch& batch);

struct BatchOptions {
  Index batch = 16;
  Index length = 256;  ///< T; scored tasks bring their own
  bool carry = false;  ///< each lane reads its share of the stream in order
  std::uint64_t seed = 1;
};

/// The order in which training reads a split. Batch n is a pure function of the split, the options and n, so that a
/// resumed run reads on exactly where it stopped.
///
/// Plain: each epoch cuts the stream, seen as a ring, into windows of T tokens from an offset of its own, and takes
/// them in an order of its own; each window is read once an epoch and starts afresh.
/// Carried: lane b reads the b-th of B equal shares of the stream from its begin to its end, again and again; only
/// documents and a share's begin start afresh, and the state goes on from batch to batch.
/// Scored tasks: the rows, in a new order each epoch.
class Batcher {
 public:
  /// `name` opens error messages. Throws InputError where the split is shorter than a window, UsageError for a scored
  /// task that should be carried.
  Batcher(const Split& split, const BatchOptions& options, const std::string& name);

  Index batch() const { return options_.batch; }
  Index length() const { return options_.length; }
  bool carries() const { return options_.carry; }
  /// Windows (rows) of an epoch; for carried lanes, the tokens of a share.
  Index epoch_size() const { return epoch_size_; }
  /// How often the split has been read when batch n begins.
  double epochs_before(Index n) const;

  /// Batch n = 0, 1, ...
  void fill(Index n, Batch& batch) const;

 private:
  struct Epoch {
    Index number;
    Permutation order;
    Index offset;
  };
  Epoch epoch(Index number) const;
  void put_window(const Epoch& epoch, Index place, Index lane, Batch& batch) const;
  void put_share(Index n, Index lane, Batch& batch) const;
  void put_row(const Epoch& epoch, Index place, Index lane, Batch& batch) const;

  const Split* split_;
  BatchOptions options_;
  Index epoch_size_;
};

}  // namespace quipu
