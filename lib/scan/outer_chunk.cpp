#include "scan/outer_chunk.h"

#include <algorithm>

#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

Index decay_width(Decay decay, Index key_width, Index value_width) {
  switch (decay) {
    case Decay::none:
      return 0;
    case Decay::scalar:
      return 1;
    case Decay::key:
      return key_width;
    case Decay::value:
      return value_width;
  }
  return 0;
}

Matrix dense(std::vector<Real>& storage, Index rows, Index cols) { return {storage.data(), rows, cols, cols}; }

void copy_rows(Matrix to, Matrix from) {
  for (Index r = 0; r < to.rows; ++r) std::copy_n(from.row(r), from.cols, to.row(r));
}

void scale_all(OuterState state, const Real* factor, Index width) {
  scale_rows(state.s, factor, width);
  if (state.z != nullptr) scale_rows({state.z, state.s.rows, 1, 1}, factor, width);
}

/// sum[c] += column sums of x.
void add_sums(Real* sum, Matrix x) {
  for (Index r = 0; r < x.rows; ++r) kernels::add_into(sum, x.row(r), x.cols);
}

}  // namespace

OuterChunk::OuterChunk(Decay decay, Index key_width, Index value_width, Index groups)
    : decay_(decay), groups_(groups), blocks_(kOuterChunk, decay_width(decay, key_width, value_width)) {
  const Index panel_width = decay == Decay::value ? value_width : key_width;
  const auto sized = [](Index n) { return static_cast<std::size_t>(n); };
  panel_.resize(sized(kOuterChunk * panel_width));
  scaled_.resize(sized(groups * kOuterChunk * panel_width));
  scores_.resize(sized(kOuterChunk * kOuterChunk));
  kept_scores_.resize(sized(groups * kOuterChunk * kOuterChunk));
  state_.resize(sized(key_width * value_width));
  z_.resize(sized(key_width));
  decay_sum_.resize(sized(blocks_.width()));
}

void OuterChunk::forward(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out) {
  blocks_.cut(in.log_decay, in.k.rows);
  if (decay_ == Decay::value)
    forward_value(in, state, out);
  else
    forward_key(in, state, out);
}

void OuterChunk::backward(const OuterChunkInput& in, OuterState before, OuterState after, const OuterChunkOutput& out,
                          const OuterChunkOutput& dout, OuterState dstate, const OuterChunkGradient& din) {
  blocks_.cut(in.log_decay, in.k.rows);
  if (blocks_.width() > 0) read_state_gradient(after, dstate);
  if (decay_ == Decay::value)
    backward_value(in, before, dout, dstate, din);
  else
    backward_key(in, before, dout, dstate, din);
  if (blocks_.width() > 0) backward_decay(in, out, dout, din);
}

void OuterChunk::enter_block(Index i, Matrix x, Matrix panel) {
  const Index width = blocks_.width();
  scale_columns(panel.slice(0, blocks_.begin(i)), blocks_.entry(i), width);
  for (Index r = blocks_.begin(i); r < blocks_.end(i); ++r)
    scale_row(panel.row(r), x.row(r), x.cols, blocks_.inverse(r), width);
}

void OuterChunk::leave_block(Index i, Matrix panel, Matrix dx) {
  const Index width = blocks_.width();
  for (Index r = blocks_.begin(i); r < blocks_.end(i); ++r)
    scale_row(dx.row(r), panel.row(r), dx.cols, blocks_.inverse(r), width);
  scale_columns(panel.slice(0, blocks_.begin(i)), blocks_.entry(i), width);
}

void OuterChunk::clear_future(Matrix scores) {
  const Index before = scores.cols - scores.rows;
  for (Index r = 0; r < scores.rows; ++r)
    std::fill(scores.row(r) + before + r + 1, scores.row(r) + scores.cols, Real{0});
}

void OuterChunk::causal_scores(Matrix scores, Matrix rows, Matrix panel) {
  blas::multiply_bt(scores, rows, panel);
  clear_future(scores);
}

Matrix OuterChunk::growth_scaled(Index i, Matrix x, std::vector<Real>& storage, Index offset) {
  const Index begin = blocks_.begin(i), rows = blocks_.end(i) - begin, width = blocks_.width();
  if (width == 0) return x.slice(begin, begin + rows);
  const Matrix y{storage.data() + (offset + begin) * x.cols, rows, x.cols, x.cols};
  for (Index r = 0; r < rows; ++r) scale_row(y.row(r), x.row(begin + r), x.cols, blocks_.growth(begin + r), width);
  return y;
}

// y_t = q_t S_0 e^{b_t} + sum_{s<=t} <q_t e^{b_t}, k_s e^{-b_s}> v_s, block by block relative to the block's reference.
void OuterChunk::forward_key(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out) {
  const Index rows = in.k.rows, width = blocks_.width();
  const Matrix panel = dense(panel_, rows, in.k.cols);
  for (Index i = 0; i < blocks_.count(); ++i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    scale_all(state, blocks_.entry(i), width);
    enter_block(i, in.k, panel);
    const Matrix scores = dense(scores_, end - begin, end);
    for (std::size_t g = 0; g < in.q.size(); ++g) {
      const Matrix q = growth_scaled(i, in.q[g], scaled_, 0);
      causal_scores(scores, q, panel.slice(0, end));
      const Matrix y = out.y[g].slice(begin, end);
      blas::multiply(y, q, state.s);
      blas::multiply(y, scores, in.v.slice(0, end), 1);
      if (state.z == nullptr) continue;
      for (Index r = 0; r < q.rows; ++r)
        *out.denominator[g].row(begin + r) =
            kernels::dot(q.row(r), state.z, q.cols) + kernels::sum(scores.row(r), scores.cols);
    }
  }
  scale_all(state, blocks_.entry(blocks_.count()), width);
  scale_columns(panel, blocks_.entry(blocks_.count()), width);
  blas::multiply_at(state.s, panel, in.v, 1);
  if (state.z != nullptr) add_sums(state.z, panel);
}

// y_t[m] = e^{b_t[m]} ( (q_t S_0)[m] + sum_{s<=t} <q_t, k_s> e^{-b_s[m]} v_s[m] ), likewise.
void OuterChunk::forward_value(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out) {
  const Index rows = in.k.rows, width = blocks_.width();
  const Matrix panel = dense(panel_, rows, in.v.cols);
  for (Index i = 0; i < blocks_.count(); ++i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    scale_columns(state.s, blocks_.entry(i), width);
    enter_block(i, in.v, panel);
    const Matrix scores = dense(scores_, end - begin, end);
    for (std::size_t g = 0; g < in.q.size(); ++g) {
      const Matrix q = in.q[g].slice(begin, end), y = out.y[g].slice(begin, end);
      causal_scores(scores, q, in.k.slice(0, end));
      blas::multiply(y, q, state.s);
      blas::multiply(y, scores, panel.slice(0, end), 1);
      for (Index r = 0; r < y.rows; ++r) kernels::multiply(y.row(r), y.row(r), blocks_.growth(begin + r), y.cols);
    }
  }
  scale_columns(state.s, blocks_.entry(blocks_.count()), width);
  scale_columns(panel, blocks_.entry(blocks_.count()), width);
  blas::multiply_at(state.s, in.k, panel, 1);
}

void OuterChunk::backward_key(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout,
                              OuterState dstate, const OuterChunkGradient& din) {
  const Index rows = in.k.rows, width = blocks_.width(), last = blocks_.count();
  const Matrix panel = dense(panel_, rows, in.k.cols);
  const OuterState state{dense(state_, before.s.rows, before.s.cols), before.z != nullptr ? z_.data() : nullptr};
  copy_rows(state.s, before.s);
  if (state.z != nullptr) std::copy_n(before.z, before.s.rows, state.z);

  for (Index r = 0; r < rows; ++r) std::fill_n(din.v.row(r), din.v.cols, Real{0});
  for (Index i = 0; i < last; ++i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    scale_all(state, blocks_.entry(i), width);
    enter_block(i, in.k, panel);
    const Matrix scores = dense(scores_, end - begin, end);
    for (Index g = 0; g < groups_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix dy = dout.y[head].slice(begin, end), dq = din.q[head].slice(begin, end);
      const Matrix q = growth_scaled(i, in.q[head], scaled_, g * kOuterChunk);
      causal_scores(scores, q, panel.slice(0, end));
      blas::multiply_at(din.v.slice(0, end), scores, dy, 1);
      const Matrix dscores{kept_scores_.data() + (g * kOuterChunk + begin) * kOuterChunk, end - begin, end,
                           kOuterChunk};
      blas::multiply_bt(dscores, dy, in.v.slice(0, end));
      blas::multiply_bt(dq, dy, state.s);
      if (state.z != nullptr)
        for (Index r = 0; r < dq.rows; ++r) {
          const Real dd = *dout.denominator[head].row(begin + r);
          for (Index s = 0; s < end; ++s) dscores(r, s) += dd;
          kernels::axpy(dq.row(r), dd, state.z, dq.cols);
        }
      clear_future(dscores);
      blas::multiply(dq, dscores, panel.slice(0, end), 1);
      for (Index r = 0; r < dq.rows && width > 0; ++r)
        scale_columns(dq.slice(r, r + 1), blocks_.growth(begin + r), width);
    }
  }
  scale_columns(panel, blocks_.entry(last), width);
  blas::multiply(din.v, panel, dstate.s, 1);

  const Matrix dpanel = panel;  // the panel has done its work
  blas::multiply_bt(dpanel, in.v, dstate.s);
  if (dstate.z != nullptr)
    for (Index r = 0; r < rows; ++r) kernels::add_into(dpanel.row(r), dstate.z, dpanel.cols);
  scale_columns(dpanel, blocks_.entry(last), width);
  scale_all(dstate, blocks_.entry(last), width);
  for (Index i = last - 1; i >= 0; --i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    for (Index g = 0; g < groups_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix q = width == 0 ? in.q[head].slice(begin, end)
                                  : Matrix{scaled_.data() + (g * kOuterChunk + begin) * in.k.cols, end - begin,
                                           in.k.cols, in.k.cols};
      const Matrix dscores{kept_scores_.data() + (g * kOuterChunk + begin) * kOuterChunk, end - begin, end,
                           kOuterChunk};
      blas::multiply_at(dstate.s, q, dout.y[head].slice(begin, end), 1);
      blas::multiply_at(dpanel.slice(0, end), dscores, q, 1);
      if (dstate.z == nullptr) continue;
      for (Index r = 0; r < q.rows; ++r)
        kernels::axpy(dstate.z, *dout.denominator[head].row(begin + r), q.row(r), q.cols);
    }
    leave_block(i, dpanel, din.k);
    scale_all(dstate, blocks_.entry(i), width);
  }
}

void OuterChunk::backward_value(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout,
                                OuterState dstate, const OuterChunkGradient& din) {
  const Index rows = in.k.rows, width = blocks_.width(), last = blocks_.count();
  const Matrix panel = dense(panel_, rows, in.v.cols);
  const Matrix state = dense(state_, before.s.rows, before.s.cols);
  copy_rows(state, before.s);
  for (Index r = 0; r < rows; ++r) std::fill_n(din.k.row(r), din.k.cols, Real{0});
  for (Index i = 0; i < last; ++i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    scale_columns(state, blocks_.entry(i), width);
    enter_block(i, in.v, panel);
    const Matrix dscores = dense(scores_, end - begin, end);
    for (Index g = 0; g < groups_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix q = in.q[head].slice(begin, end), dq = din.q[head].slice(begin, end);
      const Matrix dy = growth_scaled(i, dout.y[head], scaled_, g * kOuterChunk);
      const Matrix scores{kept_scores_.data() + (g * kOuterChunk + begin) * kOuterChunk, end - begin, end, kOuterChunk};
      causal_scores(scores, q, in.k.slice(0, end));
      causal_scores(dscores, dy, panel.slice(0, end));
      blas::multiply_bt(dq, dy, state);
      blas::multiply(dq, dscores, in.k.slice(0, end), 1);
      blas::multiply_at(din.k.slice(0, end), dscores, q, 1);
    }
  }
  scale_columns(panel, blocks_.entry(last), width);
  blas::multiply_bt(din.k, panel, dstate.s, 1);

  const Matrix dpanel = panel;
  blas::multiply(dpanel, in.k, dstate.s);
  scale_columns(dpanel, blocks_.entry(last), width);
  scale_columns(dstate.s, blocks_.entry(last), width);
  for (Index i = last - 1; i >= 0; --i) {
    const Index begin = blocks_.begin(i), end = blocks_.end(i);
    for (Index g = 0; g < groups_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix dy{scaled_.data() + (g * kOuterChunk + begin) * in.v.cols, end - begin, in.v.cols, in.v.cols};
      const Matrix scores{kept_scores_.data() + (g * kOuterChunk + begin) * kOuterChunk, end - begin, end, kOuterChunk};
      blas::multiply_at(dstate.s, in.q[head].slice(begin, end), dy, 1);
      blas::multiply_at(dpanel.slice(0, end), scores, dy, 1);
    }
    leave_block(i, dpanel, din.v);
    scale_columns(dstate.s, blocks_.entry(i), width);
  }
}

// sum_v S dS for a decay on the key index, sum_k for one on the value index, the sum of both for a scalar.
void OuterChunk::read_state_gradient(OuterState after, OuterState dstate) {
  std::fill(decay_sum_.begin(), decay_sum_.end(), 0.0);
  const Index width = blocks_.width();
  for (Index k = 0; k < after.s.rows; ++k) {
    double row_sum = 0;
    for (Index v = 0; v < after.s.cols; ++v) {
      const double product = static_cast<double>(after.s(k, v)) * dstate.s(k, v);
      if (decay_ == Decay::value)
        decay_sum_[static_cast<std::size_t>(v)] += product;
      else
        row_sum += product;
    }
    if (after.z != nullptr) row_sum += static_cast<double>(after.z[k]) * dstate.z[k];
    if (decay_ != Decay::value) decay_sum_[static_cast<std::size_t>(width == 1 ? 0 : k)] += row_sum;
  }
}

// dg_t = sum_{s>=t} (q_s dq_s - k_s dk_s) + the state's part; with y dy - v dv where the decay is on the value index.
void OuterChunk::backward_decay(const OuterChunkInput& in, const OuterChunkOutput& out, const OuterChunkOutput& dout,
                                const OuterChunkGradient& din) {
  const bool value = decay_ == Decay::value;
  const std::vector<Matrix>& plus = value ? out.y : in.q;
  const std::vector<Matrix>& dplus = value ? dout.y : din.q;
  const Matrix minus = value ? in.v : in.k, dminus = value ? din.v : din.k;
  const Index width = blocks_.width();
  for (Index t = in.k.rows - 1; t >= 0; --t) {
    for (Index c = 0; c < minus.cols; ++c) {
      double r = -static_cast<double>(minus(t, c)) * dminus(t, c);
      for (std::size_t g = 0; g < plus.size(); ++g) r += static_cast<double>(plus[g](t, c)) * dplus[g](t, c);
      decay_sum_[static_cast<std::size_t>(width == 1 ? 0 : c)] += r;
    }
    for (Index c = 0; c < width; ++c) din.log_decay(t, c) = static_cast<Real>(decay_sum_[static_cast<std::size_t>(c)]);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
