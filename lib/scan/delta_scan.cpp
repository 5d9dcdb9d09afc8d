#include "scan/delta_scan.h"

#include <algorithm>

#include "base/flush_denormals.h"
#include "scan/delta_chunk.h"
#include "scan/head_rows.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// The extents of a scan, checked.
struct Extents {
  Index batch, length, heads, key_heads, key, value, decay_width;
  bool general;

  Extents(const DeltaScanInput& in, const Layout& layout) {
    batch = layout.batch, length = layout.length;
    heads = in.v.extent(2), key_heads = in.k.extent(2), key = in.k.extent(3), value = in.v.extent(3);
    general = in.erase.defined();
    const Shape keys{batch, length, key_heads, key};
    require_shape("delta scan: q", in.q.shape(), keys);
    require_shape("delta scan: k", in.k.shape(), keys);
    require_shape("delta scan: v", in.v.shape(), {batch, length, heads, value});
    if (heads % key_heads != 0) throw ShapeError("delta scan: {} value heads for {} key heads", heads, key_heads);
    if (general == in.beta.defined() || general != in.write.defined() || in.decay == Decay::value)
      throw InternalError("delta scan: wants beta, or erase and write, and no decay on the value index");
    if (general) {
      require_shape("delta scan: erase", in.erase.shape(), keys);
      require_shape("delta scan: write", in.write.shape(), keys);
    } else {
      require_shape("delta scan: beta", in.beta.shape(), {batch, length, heads});
    }
    decay_width = in.decay == Decay::none ? 0 : in.decay == Decay::scalar ? 1 : key;
    if (in.decay != Decay::none && in.log_decay.value().count() != batch * length * heads * decay_width)
      throw ShapeError("delta scan: the log decay has the shape {}", in.log_decay.shape().text());
    if (in.state.defined()) require_shape("delta scan: state", in.state.shape(), {batch, heads, key, value});
  }
  Index groups() const { return heads / key_heads; }
  Matrix state(const Tensor& states, Index index) const {
    return {states.data() + index * key * value, key, value, value};
  }
};

/// The tensors of a scan; the same struct holds values and gradients. Gradients of q, k, erase and write stand once a
/// state head: `sharing` is 1 for them.
struct ScanTensors {
  Tensor q, k, v, beta, erase, write, log_decay;
  Index sharing;

  DeltaRows rows(const Extents& e, Index lane, Index head, const Span& span) const {
    const auto keys = [&](const Tensor& x) {
      return head_rows(x, e.heads / sharing, e.key, lane, head / sharing, span);
    };
    return {keys(q),
            keys(k),
            head_rows(v, e.heads, e.value, lane, head, span),
            head_rows(beta, e.heads, 1, lane, head, span),
            keys(erase),
            keys(write),
            head_rows(log_decay, e.heads, e.decay_width, lane, head, span)};
  }
};

/// x [B,T,H,K] summed over the state heads that share a key head: [B,T,Hk,K].
Tensor sum_shared(const Tensor& x, const Extents& e) {
  if (e.groups() == 1 || !x.defined()) return x;
  Tensor y({e.batch, e.length, e.key_heads, e.key});
  const Index groups = e.groups();
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < e.batch * e.length * e.key_heads; ++i) {
    Real* const to = y.data() + i * e.key;
    std::copy_n(x.data() + i * groups * e.key, e.key, to);
    for (Index g = 1; g < groups; ++g) kernels::add_into(to, x.data() + (i * groups + g) * e.key, e.key);
  }
  return y;
}

struct ScanBackward {
  Extents e;
  Decay decay;
  Real scale;
  Layout layout;
  std::vector<std::vector<Span>> chunks;
  ScanTensors in;
  Tensor starts, last;  // [B,H,chunks,K,V] and [B,H,K,V]
  Index chunks_kept;

  ScanTensors gradients() const {
    const Shape keys{e.batch, e.length, e.heads, e.key};
    const auto like = [](const Tensor& x) { return x.defined() ? Tensor(x.shape()) : Tensor{}; };
    return {Tensor(keys),
            Tensor(keys),
            like(in.v),
            like(in.beta),
            e.general ? Tensor(keys) : Tensor{},
            e.general ? Tensor(keys) : Tensor{},
            like(in.log_decay),
            1};
  }

  /// Gradients of the inputs into `d`; dstate in place.
  void run(const Tensor& dy, const ScanTensors& d, const Tensor& dstate) const {
#pragma omp parallel
    {
      const FlushDenormals flush;
      DeltaChunk worker(decay, e.general, e.key, e.value, scale);
#pragma omp for schedule(dynamic)
      for (Index job = 0; job < e.batch * e.heads; ++job) {
        const Index lane = job / e.heads, head = job % e.heads;
        const auto& mine = chunks[static_cast<std::size_t>(lane)];
        const Matrix ds = e.state(dstate, job);
        for (Index c = static_cast<Index>(mine.size()) - 1; c >= 0; --c) {
          const Span& span = mine[static_cast<std::size_t>(c)];
          const bool is_last = c + 1 == static_cast<Index>(mine.size());
          // What a later document starts from is no longer this chunk's state, but then its gradient is zero too.
          const Matrix after = is_last ? e.state(last, job) : e.state(starts, job * chunks_kept + c + 1);
          worker.backward(in.rows(e, lane, head, span), e.state(starts, job * chunks_kept + c), after,
                          head_rows(dy, e.heads, e.value, lane, head, span), ds, d.rows(e, lane, head, span));
          if (span.fresh) std::fill_n(ds.data, e.key * e.value, Real{0});
        }
      }
    }
    for (const Tensor* x : {&d.q, &d.k, &d.v, &d.beta, &d.erase, &d.write, &d.log_decay}) fill_padding(*x, layout, 0);
  }
};

}  // namespace

DeltaScanOutput delta_scan(Tape& tape, const DeltaScanInput& input, const Layout& layout) {
  const OpScope op_scope("delta scan");
  const Extents e(input, layout);
  const std::initializer_list<const Var*> inputs{&input.q,     &input.k,     &input.v,         &input.beta,
                                                 &input.erase, &input.write, &input.log_decay, &input.state};
  const bool keep = tape.needs(inputs);
  auto chunks = all_chunks(layout, kDeltaChunk);
  std::size_t longest = 0;
  for (const auto& lane : chunks) longest = std::max(longest, lane.size());

  ScanTensors in{input.q.value(),     input.k.value(),     input.v.value(),         input.beta.value(),
                 input.erase.value(), input.write.value(), input.log_decay.value(), e.groups()};
  const Tensor y({e.batch, e.length, e.heads, e.value});
  const Index jobs = e.batch * e.heads, kept = static_cast<Index>(longest);
  const Shape states{e.batch, e.heads, e.key, e.value};
  const Tensor state = input.state.defined() ? input.state.value().clone() : Tensor::zeros(states);
  const Tensor starts = keep ? Tensor({jobs, kept, e.key, e.value}) : Tensor{};
#pragma omp parallel
  {
    const FlushDenormals flush;
    DeltaChunk worker(input.decay, e.general, e.key, e.value, input.scale);
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < jobs; ++job) {
      const Index lane = job / e.heads, head = job % e.heads;
      const Matrix s = e.state(state, job);
      Index c = 0;
      for (const Span& span : chunks[static_cast<std::size_t>(lane)]) {
        if (span.fresh) std::fill_n(s.data, e.key * e.value, Real{0});
        if (keep) std::copy_n(s.data, e.key * e.value, e.state(starts, job * kept + c++).data);
        worker.forward(in.rows(e, lane, head, span), s, head_rows(y, e.heads, e.value, lane, head, span));
      }
    }
  }
  fill_padding(y, layout, 0);

  ScanBackward job{e, input.decay, input.scale, layout, std::move(chunks), std::move(in), starts, state, kept};
  auto out = tape.record_all(
      {y, state}, inputs,
      [job = std::move(job), dq = input.q.gradient(), dk = input.k.gradient(), dv = input.v.gradient(),
       dbeta = input.beta.gradient(), derase = input.erase.gradient(), dwrite = input.write.gradient(),
       dg = input.log_decay.gradient(), ds = input.state.gradient()](std::span<Tensor> dout) {
        const Extents& x = job.e;
        if (!dout[0].defined()) dout[0] = Tensor::zeros({x.batch, x.length, x.heads, x.value});
        const Tensor dstate = dout[1].defined() ? dout[1].unique() : Tensor::zeros({x.batch, x.heads, x.key, x.value});
        const ScanTensors d = job.gradients();
        job.run(dout[0], d, dstate);
        add_gradient(dq, sum_shared(d.q, x));
        add_gradient(dk, sum_shared(d.k, x));
        add_gradient(dv, d.v);
        add_gradient(dbeta, d.beta);
        add_gradient(derase, sum_shared(d.erase, x));
        add_gradient(dwrite, sum_shared(d.write, x));
        add_gradient(dg, d.log_decay);
        add_gradient(ds, dstate);
      });
  return {out[0], out[1]};
}

void delta_scan_step(Decay decay, const DeltaToken& token, Matrix state, Real* y) {
  const FlushDenormals flush;
  const Index width = state.cols;
  const auto factor = [&](Index k) {
    return decay == Decay::none ? Real{1} : token.decay_factor[decay == Decay::scalar ? 0 : k];
  };
  // y first holds what the state is read with before it is changed.
  kernels::fill(y, 0, width);
  if (token.erase != nullptr) {
    for (Index k = 0; k < state.rows; ++k) kernels::axpy(y, -token.erase[k], state.row(k), width);
    for (Index k = 0; k < state.rows; ++k) {
      Real* const row = state.row(k);
      if (decay != Decay::none) kernels::scale(row, factor(k), row, width);
      kernels::axpy(row, token.write[k], y, width);
      kernels::axpy(row, token.k[k], token.v, width);
    }
  } else {
    for (Index k = 0; k < state.rows; ++k) {
      Real* const row = state.row(k);
      if (decay != Decay::none) kernels::scale(row, factor(k), row, width);
      kernels::axpy(y, -token.k[k], row, width);
    }
    kernels::axpy(y, 1, token.v, width);
    for (Index k = 0; k < state.rows; ++k) kernels::axpy(state.row(k), token.beta * token.k[k], y, width);
  }
  kernels::fill(y, 0, width);
  for (Index k = 0; k < state.rows; ++k) kernels::axpy(y, token.scale * token.q[k], state.row(k), width);
}

}  // namespace quipu::inline QUIPU_REAL_NS
