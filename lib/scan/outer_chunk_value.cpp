// The chunk of an outer-product scan whose decay acts on the value index, or whose states share a key and have a decay
// of their own: the scores <q_t, k_s> know nothing of the decay and serve all states.
#include <algorithm>

#include "scan/outer_chunk.h"
#include "tensor/blas.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

void OuterChunk::plain_scores(const OuterChunkInput& in) {
  for (Index g = 0; g < queries_; ++g) {
    const Matrix weights = all_scores(scores_, g);
    blas::multiply_bt(weights, in.q[static_cast<std::size_t>(g)], in.k);
    clear_future(weights, 0);
  }
}

// y_t[m] = e^{b_t[m]} ( (q_t S_0)[m] + sum_{s<=t} <q_t, k_s> e^{-b_s[m]} v_s[m] ), block by block.
void OuterChunk::forward_value(const OuterChunkInput& in, const std::vector<OuterState>& states,
                               const OuterChunkOutput& out) {
  const Index width = blocks_.width();
  plain_scores(in);
  for (std::size_t j = 0; j < states.size(); ++j) {
    const Matrix state = states[j].s, v = in.v[j], panel{panel_.data(), rows_, v.cols, v.cols};
    blocks_.cut(in.log_decay[j], 0);
    for (Index i = 0; i < blocks_.count(); ++i) {
      scale_columns(state, blocks_.entry(i), width);
      enter_block(i, v, panel);
      for (Index g = 0; g < queries_; ++g) {
        const auto head = static_cast<std::size_t>(g);
        const Matrix y = out.y[j * in.q.size() + head].slice(begin(i), end(i));
        blas::multiply(y, in.q[head].slice(begin(i), end(i)), state);
        blas::multiply(y, scores(scores_, i, g), panel.slice(0, end(i)), 1);
        grow(i, y);
      }
    }
    scale_columns(state, blocks_.entry(blocks_.count()), width);
    scale_columns(panel, blocks_.entry(blocks_.count()), width);
    blas::multiply_at(state, in.k, panel, 1);
  }
}

void OuterChunk::backward_value(const OuterChunkInput& in, const std::vector<OuterState>& before,
                                const std::vector<OuterState>& after, const OuterChunkOutput& out,
                                const OuterChunkOutput& dout, const std::vector<OuterState>& dstates,
                                const OuterChunkInput& din) {
  plain_scores(in);
  const std::size_t reads = in.q.size();
  for (std::size_t j = 0; j < before.size(); ++j) {
    blocks_.cut(in.log_decay[j], 0);
    const bool decay_wanted = din.log_decay[j].data != nullptr;
    if (decay_wanted) read_state_gradient(after[j], dstates[j]);
    backward_value_reads(in, before[j].s, dout, dstates[j].s, din, j);
    backward_value_state(in, dout, dstates[j].s, din, j);
    if (decay_wanted)
      backward_decay(din.log_decay[j], in.v[j], din.v[j], std::span(out.y).subspan(j * reads, reads),
                     std::span(dout.y).subspan(j * reads, reads));
  }
  for (Index g = 0; g < queries_; ++g) {
    const auto head = static_cast<std::size_t>(g);
    const Matrix dweights = all_scores(dscores_, g);
    clear_future(dweights, 0);
    blas::multiply(din.q[head], dweights, in.k, 1);
    blas::multiply_at(din.k, dweights, in.q[head], 1);
  }
}

// The gradients of the scores, and what the queries and keys get through state j; added up over the states.
void OuterChunk::backward_value_reads(const OuterChunkInput& in, Matrix before, const OuterChunkOutput& dout,
                                      Matrix dstate, const OuterChunkInput& din, std::size_t j) {
  const Index width = blocks_.width(), last = blocks_.count();
  const Real beta = j == 0 ? Real{0} : Real{1};
  const Matrix v = in.v[j], panel{panel_.data(), rows_, v.cols, v.cols};
  const Matrix state{state_.data(), before.rows, before.cols, before.cols};
  std::copy_n(before.data, before.rows * before.cols, state.data);
  for (Index i = 0; i < last; ++i) {
    scale_columns(state, blocks_.entry(i), width);
    enter_block(i, v, panel);
    for (Index g = 0; g < queries_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix dy = scale_by_growth(i, dout.y[j * in.q.size() + head], g);
      blas::multiply_bt(scores(dscores_, i, g), dy, panel.slice(0, end(i)), beta);
      blas::multiply_bt(din.q[head].slice(begin(i), end(i)), dy, state, beta);
    }
  }
  scale_columns(panel, blocks_.entry(last), width);
  blas::multiply_bt(din.k, panel, dstate, beta);
}

// The gradient of state j, from the chunk's end to its start, and of its values on the way.
void OuterChunk::backward_value_state(const OuterChunkInput& in, const OuterChunkOutput& dout, Matrix dstate,
                                      const OuterChunkInput& din, std::size_t j) {
  const Index width = blocks_.width(), last = blocks_.count();
  const Matrix dv = din.v[j], dpanel{panel_.data(), rows_, dv.cols, dv.cols};  // the panel has done its work
  blas::multiply(dpanel, in.k, dstate);
  scale_columns(dpanel, blocks_.entry(last), width);
  scale_columns(dstate, blocks_.entry(last), width);
  for (Index i = last - 1; i >= 0; --i) {
    for (Index g = 0; g < queries_; ++g) {
      const auto head = static_cast<std::size_t>(g);
      const Matrix dy = scaled(i, dout.y[j * in.q.size() + head], g);
      blas::multiply_at(dstate, in.q[head].slice(begin(i), end(i)), dy, 1);
      blas::multiply_at(dpanel.slice(0, end(i)), scores(scores_, i, g), dy, 1);
    }
    leave_block(i, dpanel, dv);
    scale_columns(dstate, blocks_.entry(i), width);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
