#include "scan/delta_chunk.h"

#include <algorithm>

#include "tensor/blas.h"
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
      blocks_(kDeltaChunk, decay_width(decay, key_width)) {
  const auto sized = [](Index n) { return static_cast<std::size_t>(n); };
  for (std::size_t m = 0; m < streams_; ++m) {
    panel_[m].resize(sized(kDeltaChunk * key_width));
    dpanel_[m].resize(sized(kDeltaChunk * key_width));
    scores_[m].resize(sized(2 * kDeltaChunk * kDeltaChunk));
    dscores_[m].resize(sized(2 * kDeltaChunk * kDeltaChunk));
  }
  rows_.resize(sized(2 * kDeltaChunk * key_width));
  drows_.resize(sized(2 * kDeltaChunk * key_width));
  reads_.resize(sized(2 * kDeltaChunk * value_width));
  dreads_.resize(sized(2 * kDeltaChunk * value_width));
  writes_.resize(sized(kDeltaChunk * value_width));
  state_.resize(sized(key_width * value_width));
  decay_sum_.resize(sized(blocks_.width()));
  groups_.reserve(sized(2 * kDeltaChunk + 1));
}

/// What row `row` of the list is scaled by: e^{c_t}, with t the last token that it sees the decay of; null for the row
/// that sees none of the chunk's, or where there is no decay.
const Real* DeltaChunk::row_growth(Index row) const {
  if (blocks_.width() == 0) return nullptr;
  const Index token = row >= tokens_ ? row - tokens_ : general_ ? row - 1 : row;
  return token < 0 ? nullptr : blocks_.growth(token);
}

void DeltaChunk::prepare(const DeltaRows& in) {
  tokens_ = in.k.rows;
  blocks_.cut(in.log_decay);
  list_groups();
  const Matrix all = rows(rows_, key_width_);
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const Index t = r < tokens_ ? r : r - tokens_;
    const Real* const growth = row_growth(r);
    const Index width = growth == nullptr ? 0 : blocks_.width();
    if (r >= tokens_)
      scale_row_by(all.row(r), in.q.row(t), key_width_, scale_, growth, width);
    else if (general_)
      scale_row_by(all.row(r), in.a.row(t), key_width_, -1, growth, width);
    else
      scale_row_by(all.row(r), in.k.row(t), key_width_, in.beta(t, 0), growth, width);
  }
}

// In the general form the erasing row of token t sees the decays up to t-1 only, so that it belongs to the block of
// t-1.
void DeltaChunk::list_groups() {
  groups_.clear();
  const Index late = general_ ? 1 : 0;
  if (general_) groups_.push_back({-1, 0, 1, 0});
  for (Index i = 0; i < blocks_.count(); ++i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    const Index first = begin + late, last = std::min(end + late, tokens_);
    if (blocks_.count() == 1) {
      groups_.push_back({i, first, 2 * tokens_ - first, end});
    } else {
      if (last > first) groups_.push_back({i, first, last - first, end});
      groups_.push_back({i, tokens_ + begin, end - begin, end});
    }
  }
}

template <typename F>
void DeltaChunk::sweep(const DeltaRows& in, Matrix state, F&& fn) {
  const Index width = blocks_.width();
  Index block = -1;
  for (const Group& group : groups_) {
    for (; block < group.block; ++block) {
      const Index next = block + 1, begin = blocks_.begin(next);
      scale_rows(state, blocks_.entry(next), width);
      for (std::size_t m = 0; m < streams_; ++m) {
        const Matrix panel = half(panel_[m], key_width_), key = key_of(in, m);
        scale_columns(panel.slice(0, begin), blocks_.entry(next), width);
        for (Index r = begin; r < blocks_.end(next); ++r)
          scale_row(panel.row(r), key.row(r), key_width_, blocks_.inverse(r), width);
      }
    }
    fn(group);
  }
}

void DeltaChunk::clear_future(Matrix scores) const {
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const Index seen = r < tokens_ ? r : r - tokens_ + 1;
    std::fill(scores.row(r) + seen, scores.row(r) + tokens_, Real{0});
  }
}

void DeltaChunk::solve(const DeltaRows& in, Matrix state, Index reading) {
  const Matrix all = rows(rows_, key_width_), reads = rows(reads_, value_width_), writes = half(writes_, value_width_);
  sweep(in, state, [&](const Group& g) {
    const Matrix some = all.slice(g.row, g.row + g.count);
    for (std::size_t m = 0; m < streams_; ++m)
      blas::multiply_bt(rows(scores_[m], tokens_).slice(g.row, g.row + g.count).columns(0, g.keys), some,
                        half(panel_[m], key_width_).slice(0, g.keys));
    const Index count = std::min(g.row + g.count, reading) - g.row;
    if (count > 0) blas::multiply(reads.slice(g.row, g.row + count), some.slice(0, count), state);
  });
  for (std::size_t m = 0; m < streams_; ++m) clear_future(rows(scores_[m], tokens_));
  for (Index t = 0; t < tokens_; ++t) {
    kernels::scale(writes.row(t), -1, reads.row(t), value_width_);
    if (!general_) kernels::axpy(writes.row(t), in.beta(t, 0), in.v.row(t), value_width_);
  }
  if (general_) blas::multiply(writes, half(scores_[1], tokens_), in.v, 1, -1);
  blas::solve_unit_lower(half(scores_[0], tokens_), writes);
}

void DeltaChunk::forward(const DeltaRows& in, Matrix state, Matrix y) {
  prepare(in);
  solve(in, state, 2 * tokens_);
  const Matrix reads = rows(reads_, value_width_).slice(tokens_, 2 * tokens_);
  const Real* const last = blocks_.entry(blocks_.count());
  scale_rows(state, last, blocks_.width());
  for (std::size_t m = 0; m < streams_; ++m) {
    const Matrix panel = half(panel_[m], key_width_);
    blas::multiply(reads, rows(scores_[m], tokens_).slice(tokens_, 2 * tokens_), value_of(in, m), 1);
    scale_columns(panel, last, blocks_.width());
    blas::multiply_at(state, panel, value_of(in, m), 1);
  }
  copy_rows(y, reads);
}

void DeltaChunk::backward(const DeltaRows& in, Matrix before, Matrix after, Matrix dy, Matrix dstate,
                          const DeltaRows& din) {
  prepare(in);
  if (blocks_.width() > 0) begin_decay(after, dstate);
  const Matrix state{state_.data(), before.rows, before.cols, before.cols};
  copy_rows(state, before);
  solve(in, state, tokens_);
  backward_writes(in, dy, dstate, din);

  copy_rows(state, before);
  const Matrix all = rows(drows_, key_width_), dreads = rows(dreads_, value_width_);
  sweep(in, state, [&](const Group& g) {
    const Matrix some = all.slice(g.row, g.row + g.count);
    blas::multiply_bt(some, dreads.slice(g.row, g.row + g.count), state);
    if (g.keys == 0) return;
    for (std::size_t m = 0; m < streams_; ++m)
      blas::multiply(some, rows(dscores_[m], tokens_).slice(g.row, g.row + g.count).columns(0, g.keys),
                     half(panel_[m], key_width_).slice(0, g.keys), 1);
  });
  backward_keys(dstate, din);
  if (blocks_.width() > 0) finish_decay(in, din);
  backward_rows(in, din);
}

/// Gradients of the writes, and through the triangular system of the reads, the scores and the values.
void DeltaChunk::backward_writes(const DeltaRows& in, Matrix dy, Matrix dstate, const DeltaRows& din) {
  const Matrix dreads = rows(dreads_, value_width_), dsolved = dreads.slice(0, tokens_);
  copy_rows(dreads.slice(tokens_, 2 * tokens_), dy);
  const Real* const last = blocks_.entry(blocks_.count());
  for (std::size_t m = 0; m < streams_; ++m) scale_columns(half(panel_[m], key_width_), last, blocks_.width());
  blas::multiply(dsolved, half(panel_[0], key_width_), dstate);
  blas::multiply_at(dsolved, rows(scores_[0], tokens_).slice(tokens_, 2 * tokens_), dy, 1);
  blas::solve_unit_lower_t(half(scores_[0], tokens_), dsolved);
  for (Index t = 0; t < tokens_; ++t) {
    Real* const row = dsolved.row(t);
    if (!general_) {
      kernels::scale(din.v.row(t), in.beta(t, 0), row, value_width_);
      din.beta(t, 0) = kernels::dot(in.v.row(t), row, value_width_);
    }
    kernels::scale(row, -1, row, value_width_);  // the right side holds -R_e
  }
  if (general_) {
    blas::multiply(din.v, half(panel_[1], key_width_), dstate);
    blas::multiply_at(din.v, rows(scores_[1], tokens_), dreads, 1);
  }
  for (std::size_t m = 0; m < streams_; ++m) {
    const Matrix dscores = rows(dscores_[m], tokens_), dpanel = half(dpanel_[m], key_width_);
    blas::multiply_bt(dscores, dreads, value_of(in, m));
    clear_future(dscores);
    blas::multiply_bt(dpanel, value_of(in, m), dstate);
    scale_columns(dpanel, last, blocks_.width());
  }
  scale_rows(dstate, last, blocks_.width());
}

/// Gradients of the keys, and dstate from the end of the chunk to its start.
void DeltaChunk::backward_keys(Matrix dstate, const DeltaRows& din) {
  const Index width = blocks_.width();
  const Matrix all = rows(rows_, key_width_), dreads = rows(dreads_, value_width_);
  for (std::size_t i = groups_.size(); i-- > 0;) {
    const Group& g = groups_[i];
    const Matrix some = all.slice(g.row, g.row + g.count);
    blas::multiply_at(dstate, some, dreads.slice(g.row, g.row + g.count), 1);
    for (std::size_t m = 0; m < streams_ && g.keys > 0; ++m)
      blas::multiply_at(half(dpanel_[m], key_width_).slice(0, g.keys),
                        rows(dscores_[m], tokens_).slice(g.row, g.row + g.count).columns(0, g.keys), some, 1);
    if (g.block < 0 || (i > 0 && groups_[i - 1].block == g.block)) continue;
    const Index begin = blocks_.begin(g.block);
    for (std::size_t m = 0; m < streams_; ++m) {
      const Matrix dpanel = half(dpanel_[m], key_width_), dkey = general_ && m == 0 ? din.b : din.k;
      for (Index r = begin; r < blocks_.end(g.block); ++r)
        scale_row(dkey.row(r), dpanel.row(r), key_width_, blocks_.inverse(r), width);
      scale_columns(dpanel.slice(0, begin), blocks_.entry(g.block), width);
    }
    scale_rows(dstate, blocks_.entry(g.block), width);
  }
}

/// Gradients of what the reading rows are made of; the delta rule's keys are read and written.
void DeltaChunk::backward_rows(const DeltaRows& in, const DeltaRows& din) {
  const Matrix all = rows(drows_, key_width_);
  for (Index r = 0; r < 2 * tokens_; ++r) {
    const Index t = r < tokens_ ? r : r - tokens_;
    const Real* const growth = row_growth(r);
    const Index width = growth == nullptr ? 0 : blocks_.width();
    Real* const row = all.row(r);
    if (r >= tokens_) {
      scale_row_by(din.q.row(t), row, key_width_, scale_, growth, width);
    } else if (general_) {
      scale_row_by(din.a.row(t), row, key_width_, -1, growth, width);
    } else {
      if (width > 0) scale_row(row, row, key_width_, growth, width);
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
  const Matrix all = rows(rows_, key_width_), dall = rows(drows_, key_width_);
  const auto add = [&](Real sign, const Real* x, const Real* dx) {
    if (decay_ == Decay::scalar) {
      decay_sum_[0] += static_cast<double>(sign * kernels::dot(x, dx, key_width_));
    } else {
      for (Index c = 0; c < key_width_; ++c)
        decay_sum_[static_cast<std::size_t>(c)] += static_cast<double>(sign * x[c] * dx[c]);
    }
  };
  for (Index t = tokens_ - 1; t >= 0; --t) {
    const Index erase = general_ ? t + 1 : t;
    if (erase < tokens_) add(1, all.row(erase), dall.row(erase));
    add(1, all.row(tokens_ + t), dall.row(tokens_ + t));
    add(-1, in.k.row(t), din.k.row(t));
    if (general_) add(-1, in.b.row(t), din.b.row(t));
    for (Index c = 0; c < blocks_.width(); ++c)
      din.log_decay(t, c) = static_cast<Real>(decay_sum_[static_cast<std::size_t>(c)]);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
