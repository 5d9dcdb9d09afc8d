#include "train/batcher.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace quipu {
namespace {

constexpr std::uint64_t kOffsetSite = rng_site("window offset");
constexpr std::int32_t kNotScored = -1;

Index checked_epoch_size(const Split& split, const BatchOptions& o, const std::string& name) {
  if (split.is_scored()) {
    if (o.carry)
      throw UsageError("--carry-state: {} holds {} separate examples, which carry nothing; leave it out", name,
                       split.examples());
    if (split.examples() == 0) throw InputError("{}: split '{}' holds no example", name, split.name());
    return split.examples();
  }
  const Index needed = o.length + 1;
  if (!o.carry) {
    if (split.tokens() < needed)
      throw InputError(
          "{}: split '{}' has {} tokens, a window and its last target need {}; use --seq-len {} or less, "
          "or more text",
          name, split.name(), split.tokens(), needed, std::max<Index>(split.tokens() - 1, 1));
    return split.tokens() / o.length;
  }
  const Index share = split.tokens() / o.batch;
  if (share < needed)
    throw InputError(
        "{}: split '{}' has {} tokens, {} for each of {} carried lanes, and a window and its last target "
        "need {}; use a smaller --batch or --seq-len, or more text",
        name, split.name(), split.tokens(), share, o.batch, needed);
  return share;
}

}  // namespace

void Batch::clear(Index batch, Index length) {
  const auto count = static_cast<std::size_t>(batch * length);
  tokens.assign(count, 0);
  targets.assign(count, kNotScored);
  layout.batch = batch;
  layout.length = length;
  layout.lengths.assign(static_cast<std::size_t>(batch), 0);
  layout.starts.resize(static_cast<std::size_t>(batch));
  for (auto& starts : layout.starts) starts.clear();
  scored = 0;
}

Batch columns_of(const Batch& batch, Index begin, Index end) {
  Batch out;
  out.clear(batch.layout.batch, end - begin);
  out.layout.lengths.clear();
  for (Index lane = 0; lane < batch.layout.batch; ++lane) {
    const Index from = lane * batch.layout.length + begin, to = lane * (end - begin);
    std::copy_n(batch.tokens.begin() + from, end - begin, out.tokens.begin() + to);
    std::copy_n(batch.targets.begin() + from, end - begin, out.targets.begin() + to);
    if (!batch.layout.lengths.empty())
      out.layout.lengths.push_back(std::clamp<Index>(batch.layout.lane_length(lane) - begin, 0, end - begin));
    if (batch.layout.starts.empty()) continue;
    for (const Index start : batch.layout.starts[static_cast<std::size_t>(lane)])
      if (begin <= start && start < end) out.layout.starts[static_cast<std::size_t>(lane)].push_back(start - begin);
  }
  out.scored = std::ssize(out.targets) - std::ranges::count(out.targets, kNotScored);
  return out;
}

void put_tokens(const Split& split, Index first, Index count, bool fresh, Index lane, Index at, Batch& batch) {
  if (count <= 0) return;
  const auto place = static_cast<std::size_t>(lane * batch.layout.length + at);
  const std::span<std::int32_t> tokens(batch.tokens.data() + place, static_cast<std::size_t>(count));
  split.read(first, tokens);
  std::int32_t* const targets = batch.targets.data() + place;
  std::copy(tokens.begin() + 1, tokens.end(), targets);
  const bool has_next = first + count < split.tokens();
  if (has_next) split.read(first + count, {targets + count - 1, 1});

  auto& starts = batch.layout.starts[static_cast<std::size_t>(lane)];
  if (fresh) starts.push_back(at);
  Index scored = has_next ? count : count - 1;
  for (const Index start : split.document_starts(first, first + count + (has_next ? 1 : 0))) {
    const Index t = start - first;
    if (t > 0) targets[t - 1] = kNotScored, --scored;
    if (t < count && (starts.empty() || starts.back() != at + t)) starts.push_back(at + t);
  }
  batch.scored += scored;
  batch.layout.lengths[static_cast<std::size_t>(lane)] = at + count;
}

Batcher::Batcher(const Split& split, const BatchOptions& options, const std::string& name)
    : split_(&split), options_(options), epoch_size_(checked_epoch_size(split, options, name)) {
  if (split.is_scored()) options_.length = split.length();
}

Batcher::Epoch Batcher::epoch(Index number) const {
  const auto round = static_cast<std::uint64_t>(number);
  const auto tokens = static_cast<std::uint64_t>(split_->tokens());
  return {number, Permutation(epoch_size_, options_.seed, round),
          static_cast<Index>(Rng(options_.seed, round, kOffsetSite).below(0, tokens))};
}

double Batcher::epochs_before(Index n) const {
  const double read = static_cast<double>(n) * static_cast<double>(options_.carry ? options_.length : options_.batch);
  return read / static_cast<double>(epoch_size_);
}

void Batcher::fill(Index n, Batch& batch) const {
  batch.clear(options_.batch, options_.length);
  if (options_.carry) {
    for (Index lane = 0; lane < options_.batch; ++lane) put_share(n, lane, batch);
  } else {
    Epoch now = epoch(n * options_.batch / epoch_size_);
    for (Index lane = 0; lane < options_.batch; ++lane) {
      const Index i = n * options_.batch + lane;
      if (i / epoch_size_ != now.number) now = epoch(i / epoch_size_);
      split_->is_scored() ? put_row(now, i % epoch_size_, lane, batch) : put_window(now, i % epoch_size_, lane, batch);
    }
  }
  batch.layout.lengths.clear();  // all lanes are full
}

void Batcher::put_window(const Epoch& now, Index place, Index lane, Batch& batch) const {
  const Index tokens = split_->tokens(), first = (now.offset + now.order(place) * options_.length) % tokens;
  const Index before_end = std::min(options_.length, tokens - first);
  put_tokens(*split_, first, before_end, true, lane, 0, batch);
  put_tokens(*split_, 0, options_.length - before_end, true, lane, before_end, batch);
}

void Batcher::put_share(Index n, Index lane, Batch& batch) const {
  const Index length = options_.length, share = epoch_size_;
  Index position = n % share * (length % share) % share;  // n T modulo the share, without overflow for long runs
  for (Index at = 0; at < length;) {
    const Index count = std::min(length - at, share - position);
    put_tokens(*split_, lane * share + position, count, position == 0, lane, at, batch);
    at += count;
    position = 0;
  }
}

void Batcher::put_row(const Epoch& now, Index place, Index lane, Batch& batch) const {
  const auto length = static_cast<std::size_t>(options_.length), begin = static_cast<std::size_t>(lane) * length;
  const std::span<std::int32_t> targets(batch.targets.data() + begin, length);
  split_->read_examples(now.order(place), {batch.tokens.data() + begin, length}, targets);
  batch.layout.starts[static_cast<std::size_t>(lane)].push_back(0);
  batch.scored += static_cast<Index>(length) - std::count(targets.begin(), targets.end(), kNotScored);
}

}  // namespace quipu
