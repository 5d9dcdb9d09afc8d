#include "train/row_scorer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/kernels.h"

namespace quipu {
namespace {

std::size_t size(Index n) { return static_cast<std::size_t>(n); }

}  // namespace

Index ScoredRow::length() const {
  for (std::size_t t = targets.size(); t-- > 0;)
    if (targets[t] != kNoTarget) return static_cast<Index>(t) + 1;
  return 0;
}

inline namespace QUIPU_REAL_NS {
namespace {

std::vector<Index> lengths_of(std::span<const ScoredRow> rows) {
  std::vector<Index> lengths;
  for (const ScoredRow& row : rows) lengths.push_back(row.length());
  return lengths;
}

std::int32_t likeliest(const Real* logits, Index vocab, Index row, Index position) {
  const Real largest = kernels::max(logits, vocab);
  if (!std::isfinite(largest))
    throw NumericError("example {}, token {}: a logit is {}; the model's parameters or its state overflow", row,
                       position, largest);
  return static_cast<std::int32_t>(std::find(logits, logits + vocab, largest) - logits);
}

}  // namespace

/// Hidden states of scored tokens, side by side in the order of `places`.
struct RowScorer::Hidden {
  struct Place {
    Index row, position;
    bool operator<(const Place& o) const { return row != o.row ? row < o.row : position < o.position; }
  };
  std::vector<Place> places;
  std::vector<Real> values;
  Index width = 0;

  Matrix row(Index i) { return {values.data() + i * width, 1, width, width}; }
};

RowScorer::RowScorer(const SequenceModel& model, Index chunk_tokens)
    : model_(model), chunk_tokens_(std::max<Index>(chunk_tokens, 1)) {}

/// Reads tokens first .. last - 1 of each row, a row a lane; lanes begin anew where first is 0.
RowScorer::Hidden RowScorer::read(std::span<const ScoredRow> rows, std::span<const Index> first,
                                  std::span<const Index> last, bool keep, ModelState& state) const {
  Hidden hidden;
  const auto lanes = static_cast<Index>(rows.size());
  Index longest = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) longest = std::max(longest, last[b] - first[b]);
  const Index chunk = std::max<Index>(1, chunk_tokens_ / std::max<Index>(lanes, 1));
  for (Index begin = 0; begin < longest; begin += chunk) {
    const Index length = std::min(chunk, longest - begin);
    Layout layout = Layout::plain(lanes, length);
    std::vector<std::int32_t> tokens(size(lanes * length), 0);
    Index read = 0;
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const Index from = first[b] + begin, count = std::clamp<Index>(last[b] - from, 0, length);
      layout.lengths.push_back(count);
      read += count;
      std::copy_n(rows[b].inputs.begin() + std::min(from, last[b]), count,
                  tokens.begin() + static_cast<Index>(b) * length);
    }
    Tape tape(false);
    const bool kept = keep || begin + length < longest;
    const Var out = model_.forward(tape, tokens, {.layout = layout, .keep_state = kept}, state);
    const Matrix x = out.value().matrix();
    hidden.width = x.cols;
    for (std::size_t b = 0; b < rows.size(); ++b)
      for (Index t = 0; t < layout.lengths[b]; ++t) {
        const Index position = first[b] + begin + t;
        if (rows[b].targets[size(position)] == kNoTarget) continue;
        hidden.places.push_back({static_cast<Index>(b), position});
        const Real* const row = x.row(static_cast<Index>(b) * length + t);
        hidden.values.insert(hidden.values.end(), row, row + x.cols);
      }
    if (on_tokens) on_tokens(read);
  }
  return hidden;
}

std::vector<TokenOutcome> RowScorer::score(std::span<const ScoredRow> rows) const {
  ModelState state = model_.initial_state(static_cast<Index>(rows.size()));
  const std::vector<Index> first(rows.size(), 0), last = lengths_of(rows);
  Hidden hidden = read(rows, first, last, false, state);
  const auto count = static_cast<Index>(hidden.places.size());
  const Index vocab = model_.vocab();
  std::vector<TokenOutcome> outcomes(hidden.places.size());
  const Index slice_rows = logit_rows(vocab);
  const Tensor buffer({std::min(count, slice_rows), vocab});
  for (Index begin = 0; begin < count; begin += slice_rows) {
    const Index n = std::min(slice_rows, count - begin);
    const Matrix logits = buffer.matrix().slice(0, n);
    model_.logits_into(logits, {hidden.row(begin).data, n, hidden.width, hidden.width});
    std::vector<double> totals(size(n));
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < n; ++i) {
      const auto [row, position] = hidden.places[size(begin + i)];
      const std::int32_t target = rows[size(row)].targets[size(position)];
      const double at_target = logits(i, target);
      const Real largest = kernels::max(logits.row(i), vocab);
      const auto predicted =
          static_cast<std::int32_t>(std::find(logits.row(i), logits.row(i) + vocab, largest) - logits.row(i));
      totals[size(i)] = kernels::exp_scaled_sum(logits.row(i), logits.row(i), 1, largest, vocab);
      outcomes[size(begin + i)] = {row, position, target, predicted,
                                   std::log(totals[size(i)]) + static_cast<double>(largest) - at_target};
    }
    for (Index i = 0; i < n; ++i)
      if (const TokenOutcome& o = outcomes[size(begin + i)]; !std::isfinite(o.nll_nats))
        throw NumericError("example {}, token {}: its loss is {}; the model's parameters or its state overflow", o.row,
                           o.position, o.nll_nats);
  }
  std::ranges::sort(outcomes, [](const TokenOutcome& a, const TokenOutcome& b) {
    return a.row != b.row ? a.row < b.row : a.position < b.position;
  });
  return outcomes;
}

FormComparison RowScorer::compare(std::span<const ScoredRow> rows, Index steps) const {
  const auto lanes = static_cast<Index>(rows.size());
  const std::vector<Index> last = lengths_of(rows);
  std::vector<Index> first(rows.size(), 0), middle(rows.size());
  for (std::size_t b = 0; b < rows.size(); ++b) middle[b] = std::max<Index>(0, last[b] - steps);
  ModelState state = model_.initial_state(lanes), unused = model_.initial_state(lanes);
  const Hidden hidden = read(rows, first, last, false, unused);
  read(rows, first, middle, true, state);

  FormComparison result;
  result.rows = lanes;
  Scratch scratch;
  const Tensor logits({lanes, model_.vocab()});
  std::vector<std::int32_t> tokens(rows.size());
  for (Index s = 0;; ++s) {
    std::vector<Index> positions(rows.size(), -1);
    bool any = false;
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const Index at = middle[b] + s;
      tokens[b] = at < last[b] ? rows[b].inputs[size(at)] : 0;
      if (at < last[b]) any = true;
      if (at < last[b] && rows[b].targets[size(at)] != kNoTarget) positions[b] = at;
    }
    if (!any) break;
    model_.step(tokens, state, scratch, logits.matrix());
    compare_step(rows, hidden, positions, logits.matrix(), result);
    if (on_tokens) on_tokens(lanes);
  }
  return result;
}

/// Compares logits [lanes,vocab] of the recurrent form with those of the hidden states at `positions` (-1: none).
void RowScorer::compare_step(std::span<const ScoredRow> rows, const Hidden& hidden, std::span<const Index> positions,
                             Matrix logits, FormComparison& result) const {
  std::vector<Real> parallel(size(logits.cols));
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (positions[b] < 0) continue;
    const auto row = static_cast<Index>(b);
    const auto at = std::ranges::find_if(
        hidden.places, [&](const auto& place) { return place.row == row && place.position == positions[b]; });
    if (at == hidden.places.end()) throw InternalError("example {}: no hidden state at {}", row, positions[b]);
    const Index place = at - hidden.places.begin();
    model_.logits_into({parallel.data(), 1, logits.cols, logits.cols},
                       {const_cast<Real*>(hidden.values.data()) + place * hidden.width, 1, hidden.width, hidden.width});
    const Real* const stepped = logits.row(row);
    const std::int32_t a = likeliest(parallel.data(), logits.cols, row, positions[b]);
    const std::int32_t c = likeliest(stepped, logits.cols, row, positions[b]);
    const std::int32_t target = rows[b].targets[size(positions[b])];
    double scale = 0, difference = 0;
    for (Index i = 0; i < logits.cols; ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(parallel[size(i)])));
      difference =
          std::max(difference, std::abs(static_cast<double>(parallel[size(i)]) - static_cast<double>(stepped[i])));
    }
    const double relative = difference / std::max(scale, 1e-30);
    result.tokens += 1;
    result.right_parallel += a == target ? 1 : 0;
    result.right_recurrent += c == target ? 1 : 0;
    result.differing += a != c ? 1 : 0;
    result.disagreeing += a != c && relative > FormComparison::kRounding ? 1 : 0;
    result.logit_difference = std::max(result.logit_difference, relative);
  }
}

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
