#include "scan/delta_chunk.h"

#include <algorithm>

#include "tensor/blas.h"
#include "tensor/decay_rows.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// to = times factor from, `factor` of `width` values (0: none, 1: one for all columns).
void scale_row_by(Real* to, const Real* from, Index n, Real times, const Real* factor, Index width) {
  if (width <= 1) {
    kernels::scale(to, width == 0 ? times : times * *factor, from, n);
  } else {
    kernels::multiply(to, from, factor, n);
    if (times != 1) kernels::scale(to, times, to, n);
  }
}

void copy_rows(Matrix to, Matrix from) {
  for (Index r = 0; r < to.rows; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
}

Index decay_width(Decay decay, Index key_width) {
  return decay == Decay::none ? 0 : decay == Decay::scalar ? 1 : key_width;
}

}  // namespace

DeltaChunk::DeltaChunk(Decay decay, bool general, Index key_width, Index value_width, Real scale)
    : decay_(decay),
      general_(general),
      key_width_(key_width),
      value_width_(value_width),
      streams_(general ? 2 : 1),
      scale_(scale),
      blocks_(kDeltaChunk + 1, decay_width(decay, key_width)) {
  const auto size = [](std::vector<Real>& storage, Index rows, Index width) {
    storage.resize(static_cast<std::size_t>(rows * width));
  };
  constexpr Index kRows = 2 * kDeltaChunk;
  const Index most_keys = streams_ * kDeltaChunk;
  for (auto* storage : {&rows_, &drows_}) size(*storage, kRows, key_width);
  for (auto* storage : {&reads_, &dreads_}) size(*storage, kRows, value_width);
  for (auto* storage : {&panel_, &dpanel_}) size(*storage, most_keys, key_width);
  for (auto* storage : {&writes_, &dwrites_}) size(*storage, most_keys, value_width);
  for (auto* storage : {&scores_, &dscores_}) size(*storage, kRows, most_keys);
  size(state_, key_width, value_width);
  decay_sum_.resize(static_cast<std::size_t>(blocks_.width()));
}

void DeltaChunk::prepare(const DeltaRows& in) {
  tokens_ = in.k.rows;
  blocks_.cut(in.log_decay, 1);
  const Matrix rows = rows_by(rows_, key_width_);
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const bool query = r >= tokens_;
    const Index t = query ? r - tokens_ : r;
    const Real times = query ? scale_ : general_ ? Real{1} : in.beta(t, 0);
    const Matrix& from = query ? in.q : general_ ? in.erase : in.k;
    scale_row_by(rows.row(r), from.row(t), key_width_, times, row_growth(r), blocks_.width());
  }
}

std::array<DeltaChunk::Group, 2> DeltaChunk::groups_of(Index block) const {
  if (blocks_.count() == 1) return {Group{0, 2 * tokens_, tokens_}, Group{}};
  const Index lag = erase_lag(), seen = end_key(block), first = first_key(block);
  const Index begin = std::max<Index>(blocks_.begin(block) - lag, 0), end = std::min(blocks_.end(block) - lag, tokens_);
  return {Group{begin, std::max<Index>(end - begin, 0), seen}, Group{tokens_ + first, seen - first, seen}};
}

void DeltaChunk::enter(Index block, const DeltaRows& in, Matrix state) {
  const Index first = first_key(block), width = blocks_.width();
  const Matrix panel = keys_by(panel_, key_width_);
  if (block > 0) scale_rows(state, blocks_.entry(block), width);
  for (Index m = 0; m < streams_; ++m) {
    const Matrix mine = stream(panel, m), key = key_of(in, m);
    if (block > 0) scale_columns(mine.slice(0, first), blocks_.entry(block), width);
    for (Index t = first; t < end_key(block); ++t)
      scale_row(mine.row(t), key.row(t), key_width_, blocks_.inverse(t + 1), width);
  }
}

template <typename F>
void DeltaChunk::sweep(const DeltaRows& in, Matrix state, bool entered, F&& fn) {
  for (Index i = 0; i < blocks_.count(); ++i) {
    if (!entered) enter(i, in, state);
    for (const Group& group : groups_of(i))
      if (group.count > 0) fn(group);
  }
}

template <typename F>
void DeltaChunk::for_keys(const Group& group, F&& fn) const {
  if (group.tokens == tokens_) return fn(Index{0}, keys());
  for (Index m = 0; m < streams_ && group.tokens > 0; ++m) fn(m * tokens_, group.tokens);
}

void DeltaChunk::clear_future(Matrix scores) const {
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const Index seen = r < tokens_ ? r : r - tokens_ + 1;
    for (Index m = 0; m < streams_; ++m)
      std::fill(scores.row(r) + m * tokens_ + seen, scores.row(r) + (m + 1) * tokens_, Real{0});
  }
}

void DeltaChunk::solve(const DeltaRows& in, Matrix state, Index reading) {
  const Matrix rows = rows_by(rows_, key_width_), reads = rows_by(reads_, value_width_);
  const Matrix panel = keys_by(panel_, key_width_), writes = keys_by(writes_, value_width_);
  const Matrix scores = rows_by(scores_, keys());
  sweep(in, state, false, [&](const Group& g) {
    const Matrix some = rows.slice(g.row, g.row + g.count), scored = scores.slice(g.row, g.row + g.count);
    for_keys(g, [&](Index first, Index count) {
      blas::multiply_bt(scored.columns(first, first + count), some, panel.slice(first, first + count));
    });
    const Index count = std::min(g.row + g.count, reading) - g.row;
    if (count > 0) blas::multiply(reads.slice(g.row, g.row + count), some.slice(0, count), state);
  });
  clear_future(scores);
  const Matrix solved = stream(writes, 0), erasing = scores.slice(0, tokens_);
  for (Index t = 0; t < tokens_; ++t) {
    kernels::scale(solved.row(t), -1, reads.row(t), value_width_);
    if (!general_) kernels::axpy(solved.row(t), in.beta(t, 0), in.v.row(t), value_width_);
  }
  if (general_) {
    copy_rows(stream(writes, 1), in.v);
    blas::multiply(solved, erasing.columns(tokens_, keys()), stream(writes, 1), 1, -1);
  }
  blas::solve_unit_lower(erasing.columns(0, tokens_), solved);
}

void DeltaChunk::forward(const DeltaRows& in, Matrix state, Matrix y) {
  prepare(in);
  solve(in, state, 2 * tokens_);
  const Matrix reads = rows_by(reads_, value_width_).slice(tokens_, 2 * tokens_);
  const Matrix panel = keys_by(panel_, key_width_), writes = keys_by(writes_, value_width_);
  blas::multiply(reads, rows_by(scores_, keys()).slice(tokens_, 2 * tokens_), writes, 1);
  copy_rows(y, reads);
  blas::multiply_at(state, panel, writes, 1);
  scale_rows(state, blocks_.entry(blocks_.count()), blocks_.width());
}

void DeltaChunk::backward(const DeltaRows& in, Matrix before, Matrix after, Matrix dy, Matrix dstate,
                          const DeltaRows& din) {
  prepare(in);
  if (blocks_.width() > 0) begin_decay(after, dstate);
  const bool whole = blocks_.count() == 1;  // then the state and the panel stay as they are
  const Matrix state = whole ? before : Matrix{state_.data(), before.rows, before.cols, before.cols};
  if (!whole) copy_rows(state, before);
  solve(in, state, tokens_);
  backward_writes(in, dy, dstate, din);
  if (!whole) copy_rows(state, before);
  const Matrix drows = rows_by(drows_, key_width_), dreads = rows_by(dreads_, value_width_);
  const Matrix panel = keys_by(panel_, key_width_), dscores = rows_by(dscores_, keys());
  sweep(in, state, whole, [&](const Group& g) {
    const Matrix some = drows.slice(g.row, g.row + g.count), scored = dscores.slice(g.row, g.row + g.count);
    blas::multiply_bt(some, dreads.slice(g.row, g.row + g.count), state);
    for_keys(g, [&](Index first, Index count) {
      blas::multiply(some, scored.columns(first, first + count), panel.slice(first, first + count), 1);
    });
  });
  backward_keys(dstate, din);
  if (blocks_.width() > 0) finish_decay(in, din);
  backward_rows(in, din);
}

/// Gradients of the writes, and through the triangular system those of the reads, the scores and the values.
void DeltaChunk::backward_writes(const DeltaRows& in, Matrix dy, Matrix dstate, const DeltaRows& din) {
  const Matrix dreads = rows_by(dreads_, value_width_), scores = rows_by(scores_, keys());
  const Matrix panel = keys_by(panel_, key_width_), dpanel = keys_by(dpanel_, key_width_);
  const Matrix writes = keys_by(writes_, value_width_), dwrites = keys_by(dwrites_, value_width_);
  copy_rows(dreads.slice(tokens_, 2 * tokens_), dy);
  scale_rows(dstate, blocks_.entry(blocks_.count()), blocks_.width());
  blas::multiply(dwrites, panel, dstate);
  const Matrix dsolved = stream(dwrites, 0);
  blas::multiply_at(dsolved, scores.slice(tokens_, 2 * tokens_).columns(0, tokens_), dy, 1);
  blas::solve_unit_lower_t(scores.slice(0, tokens_).columns(0, tokens_), dsolved);
  for (Index t = 0; t < tokens_; ++t) {
    Real* const row = dsolved.row(t);
    kernels::scale(dreads.row(t), -1, row, value_width_);  // the right side holds -R_e
    if (general_) continue;
    kernels::scale(din.v.row(t), in.beta(t, 0), row, value_width_);
    din.beta(t, 0) = kernels::dot(in.v.row(t), row, value_width_);
  }
  if (general_) {
    blas::multiply_at(stream(dwrites, 1), scores.columns(tokens_, keys()), dreads, 1);
    copy_rows(din.v, stream(dwrites, 1));
  }
  const Matrix dscores = rows_by(dscores_, keys());
  blas::multiply_bt(dscores, dreads, writes);
  clear_future(dscores);
  blas::multiply_bt(dpanel, writes, dstate);
}

/// Gradients of the keys, and dstate from the end of the chunk to its start.
void DeltaChunk::backward_keys(Matrix dstate, const DeltaRows& din) {
  const Index width = blocks_.width();
  const Matrix rows = rows_by(rows_, key_width_), dreads = rows_by(dreads_, value_width_);
  const Matrix dpanel = keys_by(dpanel_, key_width_), dscores = rows_by(dscores_, keys());
  for (Index i = blocks_.count() - 1; i >= 0; --i) {
    for (const Group& g : groups_of(i)) {
      if (g.count == 0) continue;
      const Matrix some = rows.slice(g.row, g.row + g.count), scored = dscores.slice(g.row, g.row + g.count);
      blas::multiply_at(dstate, some, dreads.slice(g.row, g.row + g.count), 1);
      for_keys(g, [&](Index first, Index count) {
        blas::multiply_at(dpanel.slice(first, first + count), scored.columns(first, first + count), some, 1);
      });
    }
    const Index first = first_key(i);
    for (Index m = 0; m < streams_; ++m) {
      const Matrix mine = stream(dpanel, m), dkey = key_of(din, m);
      for (Index t = first; t < end_key(i); ++t)
        scale_row(dkey.row(t), mine.row(t), key_width_, blocks_.inverse(t + 1), width);
      if (i > 0) scale_columns(mine.slice(0, first), blocks_.entry(i), width);
    }
    if (i > 0) scale_rows(dstate, blocks_.entry(i), width);
  }
}

/// Gradients of what the rows are made of; the delta rule's keys both read and write.
void DeltaChunk::backward_rows(const DeltaRows& in, const DeltaRows& din) {
  const Matrix drows = rows_by(drows_, key_width_);
  const Index width = blocks_.width();
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const Index t = r < tokens_ ? r : r - tokens_;
    Real* const row = drows.row(r);
    if (r >= tokens_) {
      scale_row_by(din.q.row(t), row, key_width_, scale_, row_growth(r), width);
    } else if (general_) {
      scale_row_by(din.erase.row(t), row, key_width_, 1, row_growth(r), width);
    } else {
      if (width > 0) scale_row(row, row, key_width_, row_growth(r), width);
      din.beta(t, 0) += kernels::dot(in.k.row(t), row, key_width_);
      kernels::axpy(din.k.row(t), in.beta(t, 0), row, key_width_);
    }
  }
}

/// The part of the decay's gradient that comes through the state after the chunk: sum_v S dS.
void DeltaChunk::begin_decay(Matrix after, Matrix dstate) {
  std::fill(decay_sum_.begin(), decay_sum_.end(), 0.0);
  for (Index k = 0; k < after.rows; ++k)
    decay_sum_[static_cast<std::size_t>(decay_ == Decay::key ? k : 0)] +=
        static_cast<double>(kernels::dot(after.row(k), dstate.row(k), after.cols));
}

// A cumulative decay c_t stands in e^{c_t} with the rows that read at t, and in e^{-c_t} with the keys of t. dg_t is
// the sum over s >= t of what c_s gets: rows drows (whatever their scale), less k dk and b db.
void DeltaChunk::finish_decay(const DeltaRows& in, const DeltaRows& din) {
  const Matrix all = rows_by(rows_, key_width_), dall = rows_by(drows_, key_width_);
  const Index width = blocks_.width();
  double* const sums = decay_sum_.data();
  const auto add = [&](const Real* x, const Real* dx) {
    if (width == 1)
      *sums += static_cast<double>(kernels::dot(x, dx, key_width_));
    else
      kernels::add_products(sums, x, dx, key_width_);
  };
  const auto subtract = [&](const Real* x, const Real* dx) {
    if (width == 1)
      *sums -= static_cast<double>(kernels::dot(x, dx, key_width_));
    else
      kernels::subtract_products(sums, x, dx, key_width_);
  };
  for (Index t = tokens_ - 1; t >= 0; --t) {
    const Index erase = t + 1 - erase_lag();
    if (erase < tokens_) add(all.row(erase), dall.row(erase));
    add(all.row(tokens_ + t), dall.row(tokens_ + t));
    subtract(in.k.row(t), din.k.row(t));
    if (general_) subtract(in.write.row(t), din.write.row(t));
    kernels::round_sums(din.log_decay.row(t), sums, width);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
