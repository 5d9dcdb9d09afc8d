#include "scan/outer_scan.h"

#include <algorithm>

#include "scan/outer_chunk.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// The extents of a scan, checked.
struct Extents {
  Index batch, length, heads, state_heads, key, value, decay_width;

  Extents(const OuterScanInput& in, const Layout& layout) {
    batch = layout.batch, length = layout.length;
    heads = in.q.extent(2), state_heads = in.k.extent(2), key = in.k.extent(3), value = in.v.extent(3);
    require_shape("outer scan: q", in.q.shape(), {batch, length, heads, key});
    require_shape("outer scan: k", in.k.shape(), {batch, length, state_heads, key});
    require_shape("outer scan: v", in.v.shape(), {batch, length, state_heads, value});
    if (heads % state_heads != 0) throw ShapeError("outer scan: {} query heads for {} state heads", heads, state_heads);
    if (in.normaliser && in.decay == Decay::value)
      throw InternalError("outer scan: no normaliser for a decay on the value index");
    decay_width = in.decay == Decay::scalar ? 1 : in.decay == Decay::key ? key : in.decay == Decay::value ? value : 0;
    if (in.decay != Decay::none && in.log_decay.value().count() != batch * length * state_heads * decay_width)
      throw ShapeError("outer scan: the log decay has the shape {}", in.log_decay.shape().text());
    if (in.state.defined()) require_shape("outer scan: state", in.state.shape(), {batch, state_heads, key, value});
    if (in.z.defined()) require_shape("outer scan: z", in.z.shape(), {batch, state_heads, key});
  }
  Index groups() const { return heads / state_heads; }
};

/// Rows [begin, end) of head `head` in lane `lane` of x [B,T,heads,width]; empty where x is undefined.
Matrix head_rows(const Tensor& x, Index heads, Index width, Index lane, Index head, const Span& span) {
  if (!x.defined()) return {nullptr, span.end - span.begin, 0, 0};
  const Index stride = heads * width;
  return {x.data() + (lane * x.extent(1) + span.begin) * stride + head * width, span.end - span.begin, width, stride};
}

/// The tensors of a scan; the same struct holds values and gradients.
struct ScanTensors {
  Tensor q, k, v, log_decay, y, denominator;
};

OuterChunkInput chunk_input(const ScanTensors& t, const Extents& e, Index lane, Index head, const Span& span) {
  OuterChunkInput in;
  for (Index g = 0; g < e.groups(); ++g)
    in.q.push_back(head_rows(t.q, e.heads, e.key, lane, head * e.groups() + g, span));
  in.k = head_rows(t.k, e.state_heads, e.key, lane, head, span);
  in.v = head_rows(t.v, e.state_heads, e.value, lane, head, span);
  in.log_decay = head_rows(t.log_decay, e.state_heads, e.decay_width, lane, head, span);
  return in;
}

OuterChunkOutput chunk_output(const ScanTensors& t, const Extents& e, Index lane, Index head, const Span& span) {
  OuterChunkOutput out;
  for (Index g = 0; g < e.groups(); ++g) {
    out.y.push_back(head_rows(t.y, e.heads, e.value, lane, head * e.groups() + g, span));
    if (t.denominator.defined())
      out.denominator.push_back(head_rows(t.denominator, e.heads, 1, lane, head * e.groups() + g, span));
  }
  return out;
}

/// States of all heads, or those kept at chunk starts ([B,Hs,chunks,..]).
struct ScanStates {
  Tensor s, z;

  OuterState at(Index index, const Extents& e) const {
    return {{s.data() + index * e.key * e.value, e.key, e.value, e.value},
            z.defined() ? z.data() + index * e.key : nullptr};
  }
  static ScanStates zeros(const Extents& e, Index count, bool normaliser) {
    return {Tensor::zeros({count, e.key, e.value}), normaliser ? Tensor::zeros({count, e.key}) : Tensor{}};
  }
};

void copy_state(OuterState to, OuterState from) {
  std::copy_n(from.s.data, from.s.rows * from.s.cols, to.s.data);
  if (to.z != nullptr) std::copy_n(from.z, from.s.rows, to.z);
}

void clear_state(OuterState state) {
  std::fill_n(state.s.data, state.s.rows * state.s.cols, Real{0});
  if (state.z != nullptr) std::fill_n(state.z, state.s.rows, Real{0});
}

/// Rows of padding in x [B,T,..] set to `value`.
void fill_padding(const Tensor& x, const Layout& layout, Real value) {
  if (layout.lengths.empty() || !x.defined()) return;
  const Index row = x.count() / (layout.batch * layout.length);
  for (Index b = 0; b < layout.batch; ++b)
    kernels::fill(x.data() + (b * layout.length + layout.lane_length(b)) * row, value,
                  (layout.length - layout.lane_length(b)) * row);
}

std::vector<std::vector<Span>> all_chunks(const Layout& layout) {
  std::vector<std::vector<Span>> chunks;
  for (Index b = 0; b < layout.batch; ++b) chunks.push_back(layout.chunks(b, kOuterChunk));
  return chunks;
}

struct ScanBackward {
  Extents e;
  Decay decay;
  Layout layout;
  std::vector<std::vector<Span>> chunks;
  ScanTensors in;
  ScanStates starts, last;
  Index chunks_kept;

  /// Gradients of q, k, v and the decay into `d`, which also holds those of y; dstate in place.
  void run(const ScanTensors& d, const ScanStates& dstate) const {
#pragma omp parallel
    {
      OuterChunk worker(decay, e.key, e.value, e.groups());
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < e.batch * e.state_heads; ++job) {
        const Index lane = job / e.state_heads, head = job % e.state_heads;
        const auto& mine = chunks[static_cast<std::size_t>(lane)];
        const OuterState ds = dstate.at(job, e);
        for (Index c = static_cast<Index>(mine.size()) - 1; c >= 0; --c) {
          const Span& span = mine[static_cast<std::size_t>(c)];
          const bool is_last = c + 1 == static_cast<Index>(mine.size());
          const OuterState after = is_last ? last.at(job, e) : starts.at(job * chunks_kept + c + 1, e);
          const OuterChunkInput grads = chunk_input(d, e, lane, head, span);
          worker.backward(chunk_input(in, e, lane, head, span), starts.at(job * chunks_kept + c, e), after,
                          chunk_output(in, e, lane, head, span), chunk_output(d, e, lane, head, span), ds,
                          {grads.q, grads.k, grads.v, grads.log_decay});
          if (span.fresh) clear_state(ds);
        }
      }
    }
    for (const Tensor* x : {&d.q, &d.k, &d.v, &d.log_decay}) fill_padding(*x, layout, 0);
  }
};

}  // namespace

OuterScanOutput outer_scan(Tape& tape, const OuterScanInput& input, const Layout& layout) {
  const Extents e(input, layout);
  const bool keep = tape.needs({&input.q, &input.k, &input.v, &input.log_decay, &input.state, &input.z});
  const auto chunks = all_chunks(layout);
  std::size_t longest = 0;
  for (const auto& lane : chunks) longest = std::max(longest, lane.size());

  ScanTensors t{input.q.value(),
                input.k.value(),
                input.v.value(),
                input.log_decay.value(),
                Tensor({e.batch, e.length, e.heads, e.value}),
                input.normaliser ? Tensor({e.batch, e.length, e.heads}) : Tensor{}};
  const Index jobs = e.batch * e.state_heads, kept = static_cast<Index>(longest);
  ScanStates state = ScanStates::zeros(e, jobs, input.normaliser), starts;
  if (keep) starts = ScanStates::zeros(e, jobs * kept, input.normaliser);
  if (input.state.defined()) std::copy_n(input.state.value().data(), state.s.count(), state.s.data());
  if (input.z.defined()) std::copy_n(input.z.value().data(), state.z.count(), state.z.data());

#pragma omp parallel
  {
    OuterChunk worker(input.decay, e.key, e.value, e.groups());
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < jobs; ++job) {
      const Index lane = job / e.state_heads, head = job % e.state_heads;
      Index c = 0;
      for (const Span& span : chunks[static_cast<std::size_t>(lane)]) {
        if (span.fresh) clear_state(state.at(job, e));
        if (keep) copy_state(starts.at(job * kept + c++, e), state.at(job, e));
        worker.forward(chunk_input(t, e, lane, head, span), state.at(job, e), chunk_output(t, e, lane, head, span));
      }
    }
  }
  fill_padding(t.y, layout, 0);
  fill_padding(t.denominator, layout, 1);
  state.s = state.s.reshaped({e.batch, e.state_heads, e.key, e.value});
  if (input.normaliser) state.z = state.z.reshaped({e.batch, e.state_heads, e.key});

  const Tensor y = t.y, denominator = t.denominator;
  ScanBackward job{e, input.decay, layout, chunks, std::move(t), std::move(starts), state, kept};
  if (input.decay != Decay::value) job.in.y = {};  // read only where the decay is on the value index
  auto out = tape.record_all(
      {y, denominator, state.s, state.z}, {&input.q, &input.k, &input.v, &input.log_decay, &input.state, &input.z},
      [job = std::move(job), dq = input.q.gradient(), dk = input.k.gradient(), dv = input.v.gradient(),
       dg = input.log_decay.gradient(), ds = input.state.gradient(), dz = input.z.gradient(),
       normaliser = input.normaliser](std::span<Tensor> dout) {
        ScanTensors d{Tensor(job.in.q.shape()),
                      Tensor(job.in.k.shape()),
                      Tensor(job.in.v.shape()),
                      job.in.log_decay.defined() ? Tensor(job.in.log_decay.shape()) : Tensor{},
                      dout[0],
                      dout[1]};
        if (!d.y.defined()) d.y = Tensor::zeros({job.e.batch, job.e.length, job.e.heads, job.e.value});
        if (normaliser && !d.denominator.defined())
          d.denominator = Tensor::zeros({job.e.batch, job.e.length, job.e.heads});
        ScanStates dstate = ScanStates::zeros(job.e, job.e.batch * job.e.state_heads, normaliser);
        if (dout[2].defined()) dstate.s = dout[2].unique();
        if (dout[3].defined()) dstate.z = dout[3].unique();
        job.run(d, dstate);
        add_gradient(dq, d.q);
        add_gradient(dk, d.k);
        add_gradient(dv, d.v);
        add_gradient(dg, d.log_decay);
        add_gradient(ds, dstate.s);
        add_gradient(dz, dstate.z);
      });
  return {out[0], out[1], out[2], out[3]};
}

void outer_scan_step(Decay decay, Matrix q, const Real* k, const Real* v, const Real* decay_factor, Matrix state,
                     Real* z, Matrix y, Real* denominator) {
  const Index width = state.cols;
  for (Index c = 0; c < state.rows; ++c) {
    Real* const row = state.row(c);
    if (decay == Decay::value) {
      kernels::multiply(row, row, decay_factor, width);
    } else if (decay != Decay::none) {
      const Real factor = decay_factor[decay == Decay::scalar ? 0 : c];
      kernels::scale(row, factor, row, width);
      if (z != nullptr) z[c] *= factor;
    }
    kernels::axpy(row, k[c], v, width);
    if (z != nullptr) z[c] += k[c];
  }
  for (Index g = 0; g < q.rows; ++g) {
    kernels::fill(y.row(g), 0, width);
    for (Index c = 0; c < state.rows; ++c) kernels::axpy(y.row(g), q(g, c), state.row(c), width);
    if (z != nullptr) denominator[g] = kernels::dot(q.row(g), z, state.rows);
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
