// The chunk of an outer-product scan whose decay acts on the key index, or is one for the whole state.
#include <algorithm>

#include "scan/outer_chunk.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

void scale_all(OuterState state, const Real* factor, Index width) {
  scale_rows(state.s, factor, width);
  if (state.z != nullptr) scale_rows({state.z, state.s.rows, 1, 1}, factor, width);
}

/// sum[c] += column sums of x.
void add_sums(Real* sum, Matrix x) {
  for (Index r = 0; r < x.rows; ++r) kernels::add_into(sum, x.row(r), x.cols);
}

}  // namespace

// y_t = q_t S_0 e^{b_t} + sum_{s<=t} <q_t e^{b_t}, k_s e^{-b_s}> v_s, block by block relative to the block's reference.
void OuterChunk::forward_key(const OuterChunkInput& in, OuterState state, const OuterChunkOutput& out) {
  const Index width = blocks_.width();
  const Matrix panel{panel_.data(), rows_, in.k.cols, in.k.cols};
  for (Index i = 0; i < blocks_.count(); ++i) {
    scale_all(state, blocks_.entry(i), width);
    enter_block(i, in.k, panel);
    for (Index g = 0; g < queries_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix q = scale_by_growth(i, in.q[head], 0), weights = scores(scores_, i, 0);
      blas::multiply_bt(weights, q, panel.slice(0, keys(i)));
      clear_future(weights, begin(i));
      const Matrix y = out.y[head].slice(begin(i), end(i));
      blas::multiply(y, q, state.s);
      blas::multiply(y, weights, in.v[0].slice(0, keys(i)), 1);
      if (state.z == nullptr) continue;
      for (Index r = 0; r < q.rows; ++r)
        *out.denominator[head].row(begin(i) + r) =
            kernels::dot(q.row(r), state.z, q.cols) + kernels::sum(weights.row(r), weights.cols);
    }
  }
  scale_all(state, blocks_.entry(blocks_.count()), width);
  scale_columns(panel, blocks_.entry(blocks_.count()), width);
  blas::multiply_at(state.s, panel, in.v[0], 1);
  if (state.z != nullptr) add_sums(state.z, panel);
}

void OuterChunk::backward_key(const OuterChunkInput& in, OuterState before, const OuterChunkOutput& dout,
                              OuterState dstate, const OuterChunkInput& din) {
  const Index width = blocks_.width(), last = blocks_.count();
  const Matrix panel{panel_.data(), rows_, in.k.cols, in.k.cols};
  const OuterState state{{state_.data(), before.s.rows, before.s.cols, before.s.cols},
                         before.z != nullptr ? z_.data() : nullptr};
  std::copy_n(before.s.data, before.s.rows * before.s.cols, state.s.data);
  if (state.z != nullptr) std::copy_n(before.z, before.s.rows, state.z);
  for (Index r = 0; r < rows_; ++r) std::fill_n(din.v[0].row(r), din.v[0].cols, Real{0});
  for (Index i = 0; i < last; ++i) {
    scale_all(state, blocks_.entry(i), width);
    enter_block(i, in.k, panel);
    for (Index g = 0; g < queries_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix dy = dout.y[head].slice(begin(i), end(i)), dq = din.q[head].slice(begin(i), end(i));
      const Matrix q = scale_by_growth(i, in.q[head], g);
      const Matrix weights = scores(scores_, i, 0), dweights = scores(dscores_, i, g);
      blas::multiply_bt(weights, q, panel.slice(0, keys(i)));
      clear_future(weights, begin(i));
      blas::multiply_at(din.v[0].slice(0, keys(i)), weights, dy, 1);
      blas::multiply_bt(dweights, dy, in.v[0].slice(0, keys(i)));
      blas::multiply_bt(dq, dy, state.s);
      if (state.z != nullptr)
        for (Index r = 0; r < dq.rows; ++r) {
          const Real dd = *dout.denominator[head].row(begin(i) + r);
          for (Index s = 0; s < dweights.cols; ++s) dweights(r, s) += dd;
          kernels::axpy(dq.row(r), dd, state.z, dq.cols);
        }
      clear_future(dweights, begin(i));
      blas::multiply(dq, dweights, panel.slice(0, keys(i)), 1);
      grow(i, dq);
    }
  }
  scale_columns(panel, blocks_.entry(last), width);
  blas::multiply(din.v[0], panel, dstate.s, 1);
  backward_key_state(in, dout, dstate, din);
}

// The gradient of the state, from the chunk's end to its start, and of the keys on the way.
void OuterChunk::backward_key_state(const OuterChunkInput& in, const OuterChunkOutput& dout, OuterState dstate,
                                    const OuterChunkInput& din) {
  const Index width = blocks_.width(), last = blocks_.count();
  const Matrix dpanel{panel_.data(), rows_, in.k.cols, in.k.cols};  // the panel has done its work
  blas::multiply_bt(dpanel, in.v[0], dstate.s);
  if (dstate.z != nullptr)
    for (Index r = 0; r < rows_; ++r) kernels::add_into(dpanel.row(r), dstate.z, dpanel.cols);
  scale_columns(dpanel, blocks_.entry(last), width);
  scale_all(dstate, blocks_.entry(last), width);
  for (Index i = last - 1; i >= 0; --i) {
    for (Index g = 0; g < queries_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix q = scaled(i, in.q[head], g);
      blas::multiply_at(dstate.s, q, dout.y[head].slice(begin(i), end(i)), 1);
      blas::multiply_at(dpanel.slice(0, keys(i)), scores(dscores_, i, g), q, 1);
      if (dstate.z == nullptr) continue;
      for (Index r = 0; r < q.rows; ++r)
        kernels::axpy(dstate.z, *dout.denominator[head].row(begin(i) + r), q.row(r), q.cols);
    }
    leave_block(i, dpanel, din.k);
    scale_all(dstate, blocks_.entry(i), width);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
