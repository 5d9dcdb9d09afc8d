#include "scan/outer_scan.h"

#include <algorithm>

#include "base/blocks.h"
#include "base/flush_denormals.h"
#include "scan/head_rows.h"
#include "scan/outer_chunk.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// States that share a key and are worked off together; more are split, so that there is work for several threads.
constexpr Index kStatesAtOnce = 4;

/// What one thread works off by itself: a lane's states first .. first + states - 1, which read one key head.
struct Job {
  Index lane, key_head, part, first, states;
};

/// The extents of a scan, checked.
struct Extents {
  Index batch, length, queries, keys, states, key, value, decay_width;
  bool constant_decay;

  Extents(const OuterScanInput& in, const Layout& layout) {
    batch = layout.batch, length = layout.length;
    queries = in.q.extent(2), keys = in.k.extent(2), states = in.v.extent(2), key = in.k.extent(3);
    value = in.v.extent(3);
    require_shape("outer scan: q", in.q.shape(), {batch, length, queries, key});
    require_shape("outer scan: k", in.k.shape(), {batch, length, keys, key});
    require_shape("outer scan: v", in.v.shape(), {batch, length, states, value});
    if (keys == states ? queries % states != 0 : states % keys != 0 || queries != keys)
      throw ShapeError("outer scan: {} query heads and {} key heads for {} state heads", queries, keys, states);
    decay_width = in.decay == Decay::scalar ? 1 : in.decay == Decay::key ? key : in.decay == Decay::value ? value : 0;
    constant_decay = in.decay != Decay::none && in.log_decay.shape().rank() <= 2;
    const Index tokens = constant_decay ? 1 : batch * length;
    if (in.decay != Decay::none && in.log_decay.value().count() != tokens * states * decay_width)
      throw ShapeError("outer scan: the log decay has the shape {}", in.log_decay.shape().text());
    if (in.state.defined()) require_shape("outer scan: state", in.state.shape(), {batch, states, key, value});
    if (in.z.defined()) require_shape("outer scan: z", in.z.shape(), {batch, states, key});
    if (in.bonus.defined()) require_shape("outer scan: bonus", in.bonus.shape(), {states, key});
    const bool scales_values = in.decay == Decay::value || keys < states;
    if ((scales_values && (in.normaliser || in.bonus.defined())) || (in.normaliser && in.bonus.defined()) ||
        (in.decay == Decay::key && keys < states))
      throw InternalError("outer scan: no such form");
  }
  /// Heads of y, and how many of them read a state.
  Index reads() const { return std::max(queries, states); }
  Index reads_of_state() const { return reads() / states; }
  /// States that share a key, and the parts that they are worked off in.
  Index sharing() const { return states / keys; }
  Index parts() const { return (sharing() + kStatesAtOnce - 1) / kStatesAtOnce; }
  Index jobs() const { return batch * keys * parts(); }
  Job job(Index index) const {
    const Index part = index % parts(), key_head = index / parts() % keys, first = part * kStatesAtOnce;
    return {index / parts() / keys, key_head, part, key_head * sharing() + first,
            std::min(kStatesAtOnce, sharing() - first)};
  }
};

/// `head_rows` of the log decay of one state head; a constant one is the same row again and again.
Matrix decay_rows(const Tensor& g, const Extents& e, Index lane, Index head, const Span& span) {
  if (!e.constant_decay || !g.defined()) return head_rows(g, e.states, e.decay_width, lane, head, span);
  return {g.data() + head * e.decay_width, span.end - span.begin, e.decay_width, 0};
}

/// The tensors of a scan; the same struct holds values and gradients. Gradients of q and k stand apart for each part,
/// [parts B,T,..], and those of the bonus and of a constant decay for each lane.
struct ScanTensors {
  Tensor q{}, k{}, v{}, log_decay{}, bonus{}, y{}, denominator{};
};

OuterChunkInput chunk_input(const ScanTensors& t, const Extents& e, const Job& job, const Span& span, bool gradient) {
  OuterChunkInput in;
  const Index shared_lane = job.lane + (gradient ? job.part * e.batch : 0);
  const Index queries = e.queries / e.keys;
  for (Index g = 0; g < queries; ++g)
    in.q.push_back(head_rows(t.q, e.queries, e.key, shared_lane, job.key_head * queries + g, span));
  in.k = head_rows(t.k, e.keys, e.key, shared_lane, job.key_head, span);
  for (Index j = 0; j < job.states; ++j) {
    in.v.push_back(head_rows(t.v, e.states, e.value, job.lane, job.first + j, span));
    const Index lanes_before = gradient && e.constant_decay ? job.lane * e.states : 0;
    in.log_decay.push_back(decay_rows(t.log_decay, e, job.lane, lanes_before + job.first + j, span));
  }
  if (t.bonus.defined()) in.bonus = t.bonus.data() + ((gradient ? job.lane * e.states : 0) + job.first) * e.key;
  return in;
}

OuterChunkOutput chunk_output(const ScanTensors& t, const Extents& e, const Job& job, const Span& span) {
  OuterChunkOutput out;
  for (Index r = 0; r < job.states * e.reads_of_state(); ++r) {
    const Index head = job.first * e.reads_of_state() + r;
    out.y.push_back(head_rows(t.y, e.reads(), e.value, job.lane, head, span));
    if (t.denominator.defined())
      out.denominator.push_back(head_rows(t.denominator, e.reads(), 1, job.lane, head, span));
  }
  return out;
}

/// States of all heads ([B,Hs,..]), or those kept at chunk starts ([B,Hs,chunks,..]).
struct ScanStates {
  Tensor s, z;
  Index chunks = 1;

  static ScanStates zeros(const Extents& e, Index chunks, bool normaliser) {
    const Index count = e.batch * e.states * chunks;
    return {Tensor::zeros({count, e.key, e.value}), normaliser ? Tensor::zeros({count, e.key}) : Tensor{}, chunks};
  }
  static ScanStates uninitialised(const Extents& e, Index chunks, bool normaliser) {
    const Index count = e.batch * e.states * chunks;
    return {Tensor({count, e.key, e.value}), normaliser ? Tensor({count, e.key}) : Tensor{}, chunks};
  }
  std::vector<OuterState> of(const Extents& e, const Job& job, Index chunk = 0) const {
    std::vector<OuterState> states;
    for (Index j = 0; j < job.states; ++j) {
      const Index index = (job.lane * e.states + job.first + j) * chunks + chunk;
      states.push_back({{s.data() + index * e.key * e.value, e.key, e.value, e.value},
                        z.defined() ? z.data() + index * e.key : nullptr});
    }
    return states;
  }
};

void copy_states(const std::vector<OuterState>& to, const std::vector<OuterState>& from) {
  for (std::size_t j = 0; j < to.size(); ++j) {
    std::copy_n(from[j].s.data, from[j].s.rows * from[j].s.cols, to[j].s.data);
    if (to[j].z != nullptr) std::copy_n(from[j].z, from[j].s.rows, to[j].z);
  }
}

void clear_states(const std::vector<OuterState>& states) {
  for (const OuterState& state : states) {
    std::fill_n(state.s.data, state.s.rows * state.s.cols, Real{0});
    if (state.z != nullptr) std::fill_n(state.z, state.s.rows, Real{0});
  }
}

/// The sum over the outermost axis, of `parts` blocks, in their order.
Tensor sum_parts(const Tensor& x, Index parts, const Shape& shape) {
  if (parts == 1) return x.reshaped(shape);
  const Tensor sum = Tensor(shape);
  for_blocks(sum.count(), kElementBlock, [&](Index begin, Index end) {
    kernels::add(sum.data() + begin, x.data() + begin, x.data() + sum.count() + begin, end - begin);
    for (Index p = 2; p < parts; ++p)
      kernels::add_into(sum.data() + begin, x.data() + p * sum.count() + begin, end - begin);
  });
  return sum;
}

struct Scan {
  Extents e;
  Decay decay;
  bool normaliser;
  Layout layout;
  std::vector<std::vector<Span>> chunks{};  ///< of each lane
  ScanTensors in{};
  ScanStates last{}, starts{};

  OuterChunk worker() const { return {decay, e.key, e.value, e.reads_of_state(), e.sharing(), in.bonus.defined()}; }

  /// Advances `last` and writes the outputs; keeps the states at chunk starts where there is room for them.
  void forward() const {
#pragma omp parallel
    {
      const FlushDenormals flush;
      OuterChunk chunk = worker();
#pragma omp for schedule(dynamic)
      for (Index index = 0; index < e.jobs(); ++index) {
        const Job job = e.job(index);
        const auto states = last.of(e, job);
        Index c = 0;
        for (const Span& span : chunks[static_cast<std::size_t>(job.lane)]) {
          if (span.fresh) clear_states(states);
          if (starts.s.defined()) copy_states(starts.of(e, job, c++), states);
          chunk.forward(chunk_input(in, e, job, span, false), states, chunk_output(in, e, job, span));
        }
      }
    }
    fill_padding(in.y, layout, 0);
    fill_padding(in.denominator, layout, 1);
  }

  /// Gradients of all inputs into `d`, which also holds those of the outputs; dstate in place.
  void backward(const ScanTensors& d, const ScanStates& dstate) const {
#pragma omp parallel
    {
      const FlushDenormals flush;
      OuterChunk chunk = worker();
#pragma omp for schedule(dynamic)
      for (Index index = 0; index < e.jobs(); ++index) {
        const Job job = e.job(index);
        const auto& mine = chunks[static_cast<std::size_t>(job.lane)];
        const auto dstates = dstate.of(e, job);
        const auto count = static_cast<Index>(mine.size());
        for (Index c = count - 1; c >= 0; --c) {
          const Span& span = mine[static_cast<std::size_t>(c)];
          chunk.backward(chunk_input(in, e, job, span, false), starts.of(e, job, c),
                         c + 1 == count ? last.of(e, job) : starts.of(e, job, c + 1), chunk_output(in, e, job, span),
                         chunk_output(d, e, job, span), dstates, chunk_input(d, e, job, span, true));
          if (span.fresh) clear_states(dstates);
        }
      }
    }
    for (const Tensor* x : {&d.q, &d.k, &d.v}) fill_padding(*x, layout, 0);
    if (!e.constant_decay) fill_padding(d.log_decay, layout, 0);
  }

  /// Room for the gradients, that of the log decay where it is wanted, and those of the outputs where some arrived.
  ScanTensors gradients(const Tensor& dy, const Tensor& ddenominator, bool log_decay) const {
    const Index lanes = e.parts() * e.batch;
    ScanTensors d{.q = Tensor({lanes, e.length, e.queries, e.key}),
                  .k = Tensor({lanes, e.length, e.keys, e.key}),
                  .v = Tensor({e.batch, e.length, e.states, e.value}),
                  .y = dy.defined() ? dy : Tensor::zeros({e.batch, e.length, e.reads(), e.value}),
                  .denominator = ddenominator};
    if (log_decay)
      d.log_decay = e.constant_decay ? Tensor::zeros({e.batch, e.states, e.decay_width})
                                     : Tensor({e.batch, e.length, e.states * e.decay_width});
    if (in.bonus.defined()) d.bonus = Tensor::zeros({e.batch, e.states, e.key});
    if (normaliser && !d.denominator.defined()) d.denominator = Tensor::zeros({e.batch, e.length, e.reads()});
    return d;
  }
};

/// A token's own pair, read with its bonus: y += <q u, k> v.
void read_bonus(Matrix q, const Real* k, const Real* v, const Real* bonus, Matrix y) {
  for (Index g = 0; g < q.rows; ++g) {
    Real weight = 0;
    for (Index c = 0; c < q.cols; ++c) weight += q(g, c) * bonus[c] * k[c];
    kernels::axpy(y.row(g), weight, v, y.cols);
  }
}

}  // namespace

OuterScanOutput outer_scan(Tape& tape, const OuterScanInput& input, const Layout& layout) {
  const OpScope op_scope("outer scan");
  const Extents e(input, layout);
  Scan scan{.e = e, .decay = input.decay, .normaliser = input.normaliser, .layout = layout};
  std::size_t longest = 0;
  scan.chunks = all_chunks(layout, kOuterChunk);
  for (const auto& lane : scan.chunks) longest = std::max(longest, lane.size());
  scan.in = {input.q.value(),
             input.k.value(),
             input.v.value(),
             input.log_decay.value(),
             input.bonus.value(),
             Tensor({e.batch, e.length, e.reads(), e.value}),
             input.normaliser ? Tensor({e.batch, e.length, e.reads()}) : Tensor{}};
  scan.last = ScanStates::zeros(e, 1, input.normaliser);
  if (tape.needs({&input.q, &input.k, &input.v, &input.log_decay, &input.state, &input.z, &input.bonus}))
    scan.starts = ScanStates::uninitialised(e, static_cast<Index>(longest), input.normaliser);
  ScanStates& state = scan.last;
  if (input.state.defined()) std::copy_n(input.state.value().data(), state.s.count(), state.s.data());
  if (input.z.defined()) std::copy_n(input.z.value().data(), state.z.count(), state.z.data());
  scan.forward();
  state.s = state.s.reshaped({e.batch, e.states, e.key, e.value});
  if (input.normaliser) state.z = state.z.reshaped({e.batch, e.states, e.key});

  std::vector<Tensor> outputs{scan.in.y, scan.in.denominator, state.s, state.z};
  if (input.decay != Decay::value && e.keys == e.states) scan.in.y = {};  // read only where values are scaled
  auto out = tape.record_all(
      std::move(outputs), {&input.q, &input.k, &input.v, &input.log_decay, &input.state, &input.z, &input.bonus},
      [scan = std::move(scan), dq = input.q.gradient(), dk = input.k.gradient(), dv = input.v.gradient(),
       dg = input.log_decay.gradient(), ds = input.state.gradient(), dz = input.z.gradient(),
       du = input.bonus.gradient()](std::span<Tensor> dout) {
        const Extents& extents = scan.e;
        const ScanTensors d = scan.gradients(dout[0], dout[1], dg != nullptr);
        ScanStates dstate = ScanStates::zeros(extents, 1, scan.normaliser);
        if (dout[2].defined()) dstate.s = dout[2].unique();
        if (dout[3].defined()) dstate.z = dout[3].unique();
        scan.backward(d, dstate);
        add_gradient(dq, sum_parts(d.q, extents.parts(), scan.in.q.shape()));
        add_gradient(dk, sum_parts(d.k, extents.parts(), scan.in.k.shape()));
        add_gradient(dv, d.v);
        if (dg) dg->add(extents.constant_decay ? sum_parts(d.log_decay, extents.batch, dg->shape()) : d.log_decay);
        add_gradient(ds, dstate.s);
        add_gradient(dz, dstate.z);
        if (d.bonus.defined()) add_gradient(du, sum_parts(d.bonus, extents.batch, scan.in.bonus.shape()));
      });
  return {out[0], out[1], out[2], out[3]};
}

void outer_scan_step(Decay decay, Matrix q, const Real* k, const Real* v, const Real* decay_factor, Matrix state,
                     Real* z, Matrix y, Real* denominator, const Real* bonus) {
  const FlushDenormals flush;
  const Index width = state.cols;
  const auto read = [&] {
    for (Index g = 0; g < q.rows; ++g) {
      kernels::fill(y.row(g), 0, width);
      for (Index c = 0; c < state.rows; ++c) kernels::axpy(y.row(g), q(g, c), state.row(c), width);
      if (z != nullptr) denominator[g] = kernels::dot(q.row(g), z, state.rows);
    }
  };
  if (bonus != nullptr) read(), read_bonus(q, k, v, bonus, y);
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
  if (bonus == nullptr) read();
}

}  // namespace quipu::inline QUIPU_REAL_NS
