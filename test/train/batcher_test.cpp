#include "train/batcher.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "train/train_samples.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

/// A dataset whose token i is i itself, so that a batch shows what was read; documents as given.
class Counting {
 public:
  explicit Counting(const std::vector<Index>& documents) {
    DatasetWriter writer(folder_ / "d.h5", {"bytes", {}}, 100000, {});
    SplitWriter& split = writer.split("train");
    std::int32_t next = 0;
    for (const Index length : documents) {
      for (Index i = 0; i < length; ++i) split.append({{next++}});
      split.end_document();
    }
    writer.commit();
    data_.emplace(folder_ / "d.h5");
  }
  const Split& split() const { return data_->split("train"); }

 private:
  TemporaryFolder folder_;
  std::optional<Dataset> data_;
};

std::size_t at(const Batch& batch, Index lane, Index t) {
  return static_cast<std::size_t>(lane * batch.layout.length + t);
}

/// What must hold of every lane: each target is the next token of the stream, or -1 before a document's start and at
/// the stream's end; starts are where the stream's documents start.
void check_lane(const Batch& batch, Index lane, const std::set<Index>& starts, Index tokens) {
  const auto& marked = batch.layout.starts[static_cast<std::size_t>(lane)];
  CHECK(std::is_sorted(marked.begin(), marked.end()));
  CHECK(std::adjacent_find(marked.begin(), marked.end()) == marked.end());
  for (Index t = 0; t < batch.layout.length; ++t) {
    const Index token = batch.tokens[at(batch, lane, t)];
    const Index next = token + 1;
    const bool ends = next == tokens || starts.contains(next);
    CHECK(batch.targets[at(batch, lane, t)] == (ends ? -1 : static_cast<std::int32_t>(next)));
    if (starts.contains(token)) CHECK(std::find(marked.begin(), marked.end(), t) != marked.end());
    if (t > 0) {
      const Index before = batch.tokens[at(batch, lane, t - 1)];
      const bool is_marked = std::find(marked.begin(), marked.end(), t) != marked.end();
      if (token != before + 1) CHECK(is_marked);  // the ring's end, or a share's
      if (is_marked) CHECK((starts.contains(token) || token != before + 1));
    }
  }
}

}  // namespace

TEST_CASE("batcher: an epoch reads every window once and almost every token") {
  const Counting data({40, 13, 1, 50});
  const std::set<Index> starts{0, 40, 53, 54};
  constexpr Index kTokens = 104, kLength = 7, kLanes = 3, kWindows = kTokens / kLength;  // 14, in 4.67 batches
  const Batcher batcher(data.split(), {kLanes, kLength, false, 5}, "d.h5");
  CHECK(batcher.epoch_size() == kWindows);

  std::map<Index, int> first_tokens;
  std::vector<int> read(kTokens, 0);
  Batch batch;
  Index windows = 0;
  std::vector<std::vector<Index>> order_of_epoch;
  for (Index n = 0; n < 14; ++n) {  // three epochs
    batcher.fill(n, batch);
    Index scored = 0;
    for (Index lane = 0; lane < kLanes; ++lane, ++windows) {
      if (windows % kWindows == 0) {
        order_of_epoch.emplace_back();
        for (const auto& [token, times] : first_tokens) CHECK(times == 1);
        for (const int times : read) CHECK(times <= 1);
        CHECK(std::count(read.begin(), read.end(), 1) == (windows == 0 ? 0 : kWindows * kLength));
        first_tokens.clear();
        std::fill(read.begin(), read.end(), 0);
      }
      ++first_tokens[batch.tokens[at(batch, lane, 0)]];
      order_of_epoch.back().push_back(batch.tokens[at(batch, lane, 0)]);
      for (Index t = 0; t < kLength; ++t) ++read[static_cast<std::size_t>(batch.tokens[at(batch, lane, t)])];
      CHECK(batch.layout.starts[static_cast<std::size_t>(lane)].front() == 0);
      check_lane(batch, lane, starts, kTokens);
      for (Index t = 0; t < kLength; ++t) scored += batch.targets[at(batch, lane, t)] >= 0;
    }
    CHECK(batch.scored == scored);
    CHECK(batch.layout.lengths.empty());
  }
  REQUIRE(order_of_epoch.size() == 3);
  CHECK(order_of_epoch[0] != order_of_epoch[1]);
}

TEST_CASE("batcher: every token is read alike over epochs") {
  const Counting data({31});
  const Batcher batcher(data.split(), {2, 6, false, 9}, "d.h5");
  constexpr Index kEpochs = 600;
  std::vector<int> read(31, 0);
  Batch batch;
  for (Index n = 0; n * 2 < kEpochs * batcher.epoch_size(); ++n) {
    batcher.fill(n, batch);
    for (const std::int32_t token : batch.tokens) ++read[static_cast<std::size_t>(token)];
  }
  // 30 of 31 tokens an epoch: a token is left out with probability 1/31; five standard deviations.
  for (const int times : read) CHECK(std::abs(times - kEpochs * 30.0 / 31) < 5 * std::sqrt(kEpochs / 31.0));
}

TEST_CASE("batcher: a batch depends on its number alone") {
  const Counting data({200, 3, 97});
  for (const bool carry : {false, true}) {
    const Batcher batcher(data.split(), {4, 9, carry, 3}, "d.h5"), other(data.split(), {4, 9, carry, 3}, "d.h5");
    Batch a, b;
    for (Index n = 0; n < 40; ++n) batcher.fill(n, a);
    other.fill(39, b);
    CHECK(a.tokens == b.tokens);
    CHECK(a.targets == b.targets);
    CHECK(a.layout.starts == b.layout.starts);
    CHECK(a.scored == b.scored);
  }
}

TEST_CASE("batcher: carried lanes read their shares in order, again and again") {
  const Counting data({20, 5, 28});
  const std::set<Index> starts{0, 20, 25};
  constexpr Index kTokens = 53, kLanes = 3, kLength = 5, kShare = kTokens / kLanes;
  const Batcher batcher(data.split(), {kLanes, kLength, true, 1}, "d.h5");
  CHECK(batcher.epoch_size() == kShare);
  Batch batch;
  for (Index n = 0; n < 20; ++n) {
    batcher.fill(n, batch);
    for (Index lane = 0; lane < kLanes; ++lane) {
      for (Index t = 0; t < kLength; ++t)
        CHECK(batch.tokens[at(batch, lane, t)] == lane * kShare + (n * kLength + t) % kShare);
      check_lane(batch, lane, starts, kTokens);
      const auto& marked = batch.layout.starts[static_cast<std::size_t>(lane)];
      const Index token = batch.tokens[at(batch, lane, 0)];
      const bool fresh = !marked.empty() && marked.front() == 0;
      CHECK(fresh == (token % kShare == 0 || starts.contains(token)));
    }
  }
}

TEST_CASE("batcher: rows of a scored task, each once an epoch, with their targets") {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "d.h5", {"bytes", {}}, 100, {});
  for (std::int32_t i = 0; i < 11; ++i) writer.split("train").append_examples({{i, 2, 3}}, {{-1, -1, i + 1}}, 3);
  writer.commit();
  const Dataset data(folder / "d.h5");
  const Batcher batcher(data.split("train"), {11, 256, false, 1}, "d.h5");
  CHECK(batcher.length() == 3);
  Batch batch;
  for (Index n = 0; n < 3; ++n) {
    batcher.fill(n, batch);
    CHECK(batch.scored == 11);
    std::set<std::int32_t> rows;
    for (Index lane = 0; lane < 11; ++lane) {
      const std::int32_t row = batch.tokens[at(batch, lane, 0)];
      rows.insert(row);
      CHECK(batch.targets[at(batch, lane, 1)] == -1);
      CHECK(batch.targets[at(batch, lane, 2)] == row + 1);
      CHECK(batch.layout.starts[static_cast<std::size_t>(lane)] == std::vector<Index>{0});
    }
    CHECK(rows.size() == 11);
  }
  CHECK_THROWS_WITH_AS(Batcher(data.split("train"), {2, 3, true, 1}, "d.h5"),
                       "--carry-state: d.h5 holds 11 separate examples, which carry nothing; leave it out", UsageError);
}

TEST_CASE("batcher: a split shorter than a window is one clear line") {
  const Counting data({8});
  CHECK_THROWS_WITH_AS(Batcher(data.split(), {1, 8, false, 1}, "d.h5"),
                       "d.h5: split 'train' has 8 tokens, a window and its last target need 9; use --seq-len 7 or "
                       "less, or more text",
                       InputError);
  CHECK_NOTHROW(Batcher(data.split(), {1, 7, false, 1}, "d.h5"));
  CHECK_THROWS_WITH_AS(Batcher(data.split(), {3, 2, true, 1}, "d.h5"),
                       "d.h5: split 'train' has 8 tokens, 2 for each of 3 carried lanes, and a window and its last "
                       "target need 3; use a smaller --batch or --seq-len, or more text",
                       InputError);
}
