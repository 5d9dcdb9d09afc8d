#include "scan/outer_chunk.h"

#include <algorithm>
#include <functional>

#include "tensor/blas.h"
#include "tensor/decay_rows.h"
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

}  // namespace

OuterChunk::OuterChunk(Decay decay, Index key_width, Index value_width, Index queries, Index states, bool lagging)
    : decay_(decay),
      queries_(queries),
      states_(states),
      lag_(lagging ? 1 : 0),
      blocks_(kOuterChunk + lag_, decay_width(decay, key_width, value_width)) {
  const Index panel_width = scales_values() ? value_width : key_width;
  const auto sized = [](Index n) { return static_cast<std::size_t>(n); };
  panel_.resize(sized(kOuterChunk * panel_width));
  scaled_.resize(sized(queries * kOuterChunk * panel_width));
  scores_.resize(sized(queries * kOuterChunk * kOuterChunk));
  dscores_.resize(scores_.size());
  state_.resize(sized(key_width * value_width));
  z_.resize(sized(key_width));
  decay_sum_.resize(sized(blocks_.width()));
  decay_total_.resize(decay_sum_.size());
}

void OuterChunk::forward(const OuterChunkInput& in, const std::vector<OuterState>& states,
                         const OuterChunkOutput& out) {
  rows_ = in.k.rows;
  if (scales_values()) return forward_value(in, states, out);
  blocks_.cut(in.log_decay[0], lag_);
  forward_key(in, states[0], out);
  if (in.bonus != nullptr) forward_bonus(in, out);
}

void OuterChunk::backward(const OuterChunkInput& in, const std::vector<OuterState>& before,
                          const std::vector<OuterState>& after, const OuterChunkOutput& out,
                          const OuterChunkOutput& dout, const std::vector<OuterState>& dstates,
                          const OuterChunkInput& din) {
  rows_ = in.k.rows;
  if (scales_values()) return backward_value(in, before, after, out, dout, dstates, din);
  blocks_.cut(in.log_decay[0], lag_);
  const bool decay_wanted = din.log_decay[0].data != nullptr;
  if (decay_wanted) read_state_gradient(after[0], dstates[0]);
  backward_key(in, before[0], dout, dstates[0], din);
  if (decay_wanted) backward_decay(din.log_decay[0], in.k, din.k, in.q, din.q);
  if (in.bonus != nullptr) backward_bonus(in, dout, din);
}

void OuterChunk::enter_block(Index i, Matrix x, Matrix panel) {
  const Index width = blocks_.width();
  scale_columns(panel.slice(0, earlier_keys(i)), blocks_.entry(i), width);
  for (Index r = earlier_keys(i); r < keys(i); ++r)
    scale_row(panel.row(r), x.row(r), x.cols, blocks_.inverse(r + lag_), width);
}

void OuterChunk::leave_block(Index i, Matrix panel, Matrix dx) {
  const Index width = blocks_.width();
  for (Index r = earlier_keys(i); r < keys(i); ++r)
    scale_row(dx.row(r), panel.row(r), dx.cols, blocks_.inverse(r + lag_), width);
  scale_columns(panel.slice(0, earlier_keys(i)), blocks_.entry(i), width);
}

void OuterChunk::clear_future(Matrix scores, Index begin) const {
  for (Index r = 0; r < scores.rows; ++r) {
    const Index seen = begin + r + 1 - lag_;
    if (seen < scores.cols) std::fill(scores.row(r) + seen, scores.row(r) + scores.cols, Real{0});
  }
}

Matrix OuterChunk::scaled(Index i, Matrix x, Index head) {
  if (blocks_.width() == 0) return x.slice(begin(i), end(i));
  return {scaled_.data() + (head * kOuterChunk + begin(i)) * x.cols, end(i) - begin(i), x.cols, x.cols};
}

Matrix OuterChunk::scale_by_growth(Index i, Matrix x, Index head) {
  const Matrix y = scaled(i, x, head);
  if (blocks_.width() == 0) return y;
  for (Index r = 0; r < y.rows; ++r)
    scale_row(y.row(r), x.row(begin(i) + r), x.cols, blocks_.growth(begin(i) + r), blocks_.width());
  return y;
}

void OuterChunk::grow(Index i, Matrix rows) {
  if (blocks_.width() == 0) return;
  for (Index r = 0; r < rows.rows; ++r)
    scale_row(rows.row(r), rows.row(r), rows.cols, blocks_.growth(begin(i) + r), blocks_.width());
}

Matrix OuterChunk::scores(std::vector<Real>& storage, Index i, Index head) const {
  return {storage.data() + (head * kOuterChunk + begin(i)) * kOuterChunk, end(i) - begin(i), keys(i), kOuterChunk};
}

Matrix OuterChunk::all_scores(std::vector<Real>& storage, Index head) const {
  return {storage.data() + head * kOuterChunk * kOuterChunk, rows_, rows_, kOuterChunk};
}

// sum_v S dS for a decay on the key index, sum_k for one on the value index, the sum of both for a scalar.
void OuterChunk::read_state_gradient(OuterState after, OuterState dstate) {
  std::fill(decay_sum_.begin(), decay_sum_.end(), 0.0);
  for (Index k = 0; k < after.s.rows; ++k) {
    if (decay_ == Decay::value) {
      kernels::add_products(decay_sum_.data(), after.s.row(k), dstate.s.row(k), after.s.cols);
      continue;
    }
    double& sum = decay_sum_[static_cast<std::size_t>(decay_ == Decay::scalar ? 0 : k)];
    sum += static_cast<double>(kernels::dot(after.s.row(k), dstate.s.row(k), after.s.cols));
    if (after.z != nullptr) sum += static_cast<double>(after.z[k]) * static_cast<double>(dstate.z[k]);
  }
}

// dg_t = sum_{s>=t} (plus_s dplus_s - minus_s dminus_s) + the state's part; plus is what reads, minus what is written.
// A lagging read of row t comes before its decay.
void OuterChunk::backward_decay(Matrix dlog_decay, Matrix minus, Matrix dminus, std::span<const Matrix> plus,
                                std::span<const Matrix> dplus) {
  const Index width = blocks_.width(), n = minus.cols;
  const bool constant = dlog_decay.stride == 0;
  double* const sum = decay_sum_.data();
  std::fill(decay_total_.begin(), decay_total_.end(), 0.0);
  const auto read = [&](Index t) {
    for (std::size_t g = 0; g < plus.size(); ++g) {
      if (width == 1)
        *sum += static_cast<double>(kernels::dot(plus[g].row(t), dplus[g].row(t), n));
      else
        kernels::add_products(sum, plus[g].row(t), dplus[g].row(t), n);
    }
  };
  for (Index t = rows_ - 1; t >= 0; --t) {
    if (width == 1)
      *sum -= static_cast<double>(kernels::dot(minus.row(t), dminus.row(t), n));
    else
      kernels::subtract_products(sum, minus.row(t), dminus.row(t), n);
    if (lag_ == 0) read(t);
    if (constant)
      std::transform(sum, sum + width, decay_total_.begin(), decay_total_.begin(), std::plus<>());
    else
      kernels::round_sums(dlog_decay.row(t), sum, width);
    if (lag_ == 1) read(t);
  }
  for (Index c = 0; c < width && constant; ++c)
    dlog_decay(0, c) += static_cast<Real>(decay_total_[static_cast<std::size_t>(c)]);
}

// y_t += <q_t u, k_t> v_t.
void OuterChunk::forward_bonus(const OuterChunkInput& in, const OuterChunkOutput& out) {
  for (std::size_t g = 0; g < in.q.size(); ++g)
    for (Index t = 0; t < rows_; ++t) {
      kernels::multiply(z_.data(), in.k.row(t), in.bonus, in.k.cols);
      kernels::axpy(out.y[g].row(t), kernels::dot(in.q[g].row(t), z_.data(), in.k.cols), in.v[0].row(t), in.v[0].cols);
    }
}

void OuterChunk::backward_bonus(const OuterChunkInput& in, const OuterChunkOutput& dout, const OuterChunkInput& din) {
  const Index key = in.k.cols, value = in.v[0].cols;
  Real* const product = z_.data();
  for (std::size_t g = 0; g < in.q.size(); ++g)
    for (Index t = 0; t < rows_; ++t) {
      const Real *const q = in.q[g].row(t), *const k = in.k.row(t), *const dy = dout.y[g].row(t);
      const Real dweight = kernels::dot(dy, in.v[0].row(t), value);
      kernels::multiply(product, k, in.bonus, key);
      kernels::axpy(din.v[0].row(t), kernels::dot(q, product, key), dy, value);
      kernels::axpy(din.q[g].row(t), dweight, product, key);
      kernels::scale(product, dweight, q, key);
      kernels::multiply_add(din.k.row(t), product, in.bonus, key);
      kernels::multiply_add(din.bonus, product, k, key);
    }
}

}  // namespace quipu::inline QUIPU_REAL_NS
