#include "scan/diagonal_scan.h"

#include <algorithm>

#include "base/blocks.h"
#include "scan/head_rows.h"
#include "tensor/kernels.h"
#include "tensor/kernels_diagonal.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using kernels::kDiagonalTile;

constexpr Real kLog2E = static_cast<Real>(1.44269504088896340736);

/// A tile of channels, padded with zeros to `width` where a model's channels are no multiple of the vectors.
struct Tile {
  Index begin, channels, width;

  explicit Tile(Index first, Index all) : begin(first), channels(std::min(kDiagonalTile, all - first)) {
    width = (channels + kernels::kDiagonalStep - 1) / kernels::kDiagonalStep * kernels::kDiagonalStep;
  }
  bool padded() const { return width != channels; }
};

/// A scan's inputs, with what is kept for its backward pass.
struct Scan {
  Layout layout;
  std::vector<std::vector<Span>> chunks;  // of each lane
  Tensor u, delta, a, b, c, skip;
  Index batch, length, channels, states;
  Index kept = 0;  // chunks of the longest lane
  Tensor starts;   // h at chunk starts, [jobs,kept,N,kDiagonalTile]

  Scan(const DiagonalScanInput& in, const Layout& where)
      : layout(where),
        u(in.u.value()),
        delta(in.delta.value()),
        a(in.a.value()),
        b(in.b.value()),
        c(in.c.value()),
        batch(where.batch),
        length(where.length),
        channels(in.u.extent(2)),
        states(in.a.extent(1)) {
    require_shape("diagonal scan: u", u.shape(), {batch, length, channels});
    require_shape("diagonal scan: delta", delta.shape(), {batch, length, channels});
    require_shape("diagonal scan: A", a.shape(), {channels, states});
    require_shape("diagonal scan: B", b.shape(), {batch, length, states});
    require_shape("diagonal scan: C", c.shape(), {batch, length, states});
    if (in.skip.defined()) require_shape("diagonal scan: D", in.skip.shape(), {channels});
    if (in.state.defined()) require_shape("diagonal scan: state", in.state.shape(), {batch, channels, states});
    skip = in.skip.defined() ? in.skip.value() : Tensor::zeros({channels});
    for (Index lane = 0; lane < batch; ++lane) {
      chunks.push_back(layout.chunks(lane, kDiagonalChunk));
      kept = std::max(kept, static_cast<Index>(chunks.back().size()));
    }
  }

  Index tiles() const { return (channels + kDiagonalTile - 1) / kDiagonalTile; }
  Index jobs() const { return batch * tiles(); }
  Tile tile(Index job) const { return Tile(job % tiles() * kDiagonalTile, channels); }
  Index lane(Index job) const { return job / tiles(); }
  Index block() const { return states * kDiagonalTile; }
  const std::vector<Span>& chunks_of(Index lane) const { return chunks[static_cast<std::size_t>(lane)]; }
  Real* start(Index job, Index chunk) const { return starts.data() + (job * kept + chunk) * block(); }
};

/// What the backward pass of a scan writes.
struct ScanGradients {
  Tensor u, delta, state;  // as the inputs; `state` holds those of the outgoing one at first
  Tensor b, c;             // [tiles,B,T,N], each tile's own sums
  Tensor rates;            // [jobs,N+1,kDiagonalTile]: of A, then of D
};

/// One thread's tile at a time, with its arrays: [N,kDiagonalTile] and, where a tile is padded, copies of its rows.
class Worker {
 public:
  Worker(const Scan& scan, bool backward)
      : s_(scan), h_(block_of(1)), rates_(block_of(1)), skip_(Tensor::zeros({kDiagonalTile})) {
    if (scan.channels % kernels::kDiagonalStep != 0) copies_ = Tensor::zeros({kCopies, kDiagonalChunk * kDiagonalTile});
    if (!backward) return;
    history_ = block_of(kDiagonalChunk + 1), decays_ = block_of(kDiagonalChunk);
    sums_ = Tensor({scan.states + 1, kDiagonalTile});
    room_ = Tensor({kernels::diagonal_room(kDiagonalChunk, scan.states)});
  }

  void forward(Index job, const Tensor& y, const Tensor& state) {
    take(job);
    load_state(state);
    Index chunk = 0;
    for (const Span& span : s_.chunks_of(lane_)) {
      if (span.fresh) kernels::fill(h_.data(), 0, h_.count());
      if (s_.starts.defined()) std::copy_n(h_.data(), h_.count(), s_.start(job, chunk++));
      const kernels::DiagonalTile in = inputs(span);
      Real* const out = output(y, span, 2);
      kernels::diagonal_forward(in, h_.data(), out);
      put_back(y, span, out);
    }
    store_state(state);
  }

  void backward(Index job, const Tensor& dy, const ScanGradients& d) {
    take(job);
    load_state(d.state);
    const Index rows = s_.states + 1;
    std::vector<double> totals(static_cast<std::size_t>(rows * kDiagonalTile), 0);
    const auto& chunks = s_.chunks_of(lane_);
    for (Index chunk = static_cast<Index>(chunks.size()) - 1; chunk >= 0; --chunk) {
      const Span& span = chunks[static_cast<std::size_t>(chunk)];
      backward_chunk(span, s_.start(job, chunk), dy, d);
      for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += static_cast<double>(sums_.data()[i]);
      if (span.fresh) kernels::fill(h_.data(), 0, h_.count());
    }
    std::transform(totals.begin(), totals.end(), d.rates.data() + job * rows * kDiagonalTile,
                   [](double x) { return static_cast<Real>(x); });
    store_state(d.state);
  }

 private:
  static constexpr Index kCopies = 5;

  Tensor block_of(Index tokens) const { return Tensor::zeros({tokens, s_.states, kDiagonalTile}); }

  /// `h_` is the gradient of the state here.
  void backward_chunk(const Span& span, const Real* start, const Tensor& dy, const ScanGradients& d) {
    const kernels::DiagonalTile in = inputs(span);
    std::copy_n(start, s_.block(), history_.data());
    kernels::diagonal_history(in, history_.data(), decays_.data());
    kernels::fill(sums_.data(), 0, sums_.count());
    Real *const ddelta = output(d.delta, span, 2), *const du = output(d.u, span, 3);
    const Index at = ((tile_.begin / kDiagonalTile * s_.batch + lane_) * s_.length + span.begin) * s_.states;
    kernels::diagonal_backward(in, history_.data(), decays_.data(), input(dy, span, 4),
                               {.dh = h_.data(),
                                .da = sums_.data(),
                                .dskip = sums_.data() + s_.block(),
                                .ddelta = ddelta,
                                .du = du,
                                .db = d.b.data() + at,
                                .dc = d.c.data() + at,
                                .room = room_.data()});
    put_back(d.delta, span, ddelta);
    put_back(d.u, span, du);
  }

  void take(Index job) {
    lane_ = s_.lane(job), tile_ = s_.tile(job);
    for (Tensor* x : {&h_, &rates_, &skip_}) kernels::fill(x->data(), 0, x->count());
    for (Index c = 0; c < tile_.channels; ++c) {
      skip_.data()[c] = s_.skip.data()[tile_.begin + c];
      for (Index n = 0; n < s_.states; ++n)
        rates_.data()[n * kDiagonalTile + c] = kLog2E * s_.a.data()[(tile_.begin + c) * s_.states + n];
    }
  }

  Real* state_row(const Tensor& state, Index channel) const {
    return state.data() + (lane_ * s_.channels + tile_.begin + channel) * s_.states;
  }
  void load_state(const Tensor& state) {
    for (Index c = 0; c < tile_.channels; ++c)
      for (Index n = 0; n < s_.states; ++n) h_.data()[n * kDiagonalTile + c] = state_row(state, c)[n];
  }
  void store_state(const Tensor& state) {
    for (Index c = 0; c < tile_.channels; ++c)
      for (Index n = 0; n < s_.states; ++n) state_row(state, c)[n] = h_.data()[n * kDiagonalTile + c];
  }

  Real* rows(const Tensor& x, const Span& span) const {
    return x.data() + (lane_ * s_.length + span.begin) * x.extent(2);
  }
  /// The tile's rows of x [B,T,C], in place or as copy number `slot`.
  const Real* input(const Tensor& x, const Span& span, Index slot) {
    Real *const from = rows(x, span) + tile_.begin, *const to = output(x, span, slot);
    if (tile_.padded())
      for (Index t = 0; t < span.end - span.begin; ++t) {
        std::copy_n(from + t * s_.channels, tile_.channels, to + t * kDiagonalTile);
        std::fill_n(to + t * kDiagonalTile + tile_.channels, tile_.width - tile_.channels, Real{0});
      }
    return to;
  }
  Real* output(const Tensor& x, const Span& span, Index slot) {
    if (!tile_.padded()) return rows(x, span) + tile_.begin;
    return copies_.data() + slot * kDiagonalChunk * kDiagonalTile;
  }
  void put_back(const Tensor& x, const Span& span, const Real* from) const {
    if (!tile_.padded()) return;
    for (Index t = 0; t < span.end - span.begin; ++t)
      std::copy_n(from + t * kDiagonalTile, tile_.channels, rows(x, span) + tile_.begin + t * s_.channels);
  }

  kernels::DiagonalTile inputs(const Span& span) {
    return {.tokens = span.end - span.begin,
            .width = tile_.width,
            .states = s_.states,
            .stride = tile_.padded() ? kDiagonalTile : s_.channels,
            .delta = input(s_.delta, span, 0),
            .u = input(s_.u, span, 1),
            .b = rows(s_.b, span),
            .c = rows(s_.c, span),
            .rates = rates_.data(),
            .skip = skip_.data()};
  }

  const Scan& s_;
  Index lane_ = 0;
  Tile tile_{0, 0};
  Tensor h_, rates_, skip_, copies_;
  Tensor history_, decays_, sums_, room_;
};

/// The sum over tiles of x [tiles,..], as `shape`.
Tensor sum_of_tiles(const Tensor& x, const Shape& shape) {
  Tensor sum = x.part(0, shape);
  for_blocks(sum.count(), kElementBlock, [&](Index begin, Index end) {
    for (Index tile = 1; tile < x.extent(0); ++tile)
      kernels::add_into(sum.data() + begin, x.data() + tile * sum.count() + begin, end - begin);
  });
  return sum;
}

void run_backward(const Scan& s, const Tensor& dy, const ScanGradients& d) {
#pragma omp parallel
  {
    Worker worker(s, true);
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < s.jobs(); ++job) worker.backward(job, dy, d);
  }
  fill_padding(d.u, s.layout, 0);
  fill_padding(d.delta, s.layout, 0);
}

/// Gradients of A [C,N] and D [C] from those of each lane and tile.
void sum_rates(const Scan& s, const ScanGradients& d, const Tensor& da, const Tensor& dskip) {
  for (Index c = 0; c < s.channels; ++c)
    for (Index n = 0; n <= s.states; ++n) {
      double total = 0;
      for (Index lane = 0; lane < s.batch; ++lane) {
        const Index job = lane * s.tiles() + c / kDiagonalTile;
        total += static_cast<double>(d.rates.data()[(job * (s.states + 1) + n) * kDiagonalTile + c % kDiagonalTile]);
      }
      (n < s.states ? da.data()[c * s.states + n] : dskip.data()[c]) = static_cast<Real>(total);
    }
}

}  // namespace

DiagonalScanOutput diagonal_scan(Tape& tape, const DiagonalScanInput& input, const Layout& layout) {
  const OpScope op_scope("diagonal scan");
  Scan scan(input, layout);
  if (tape.needs({&input.u, &input.delta, &input.a, &input.b, &input.c, &input.skip, &input.state}))
    scan.starts = Tensor({scan.jobs(), std::max<Index>(scan.kept, 1), scan.states, kDiagonalTile});
  const Tensor y({scan.batch, scan.length, scan.channels});
  const Tensor state =
      input.state.defined() ? input.state.value().clone() : Tensor::zeros({scan.batch, scan.channels, scan.states});
#pragma omp parallel
  {
    Worker worker(scan, false);
#pragma omp for schedule(dynamic)
    for (Index job = 0; job < scan.jobs(); ++job) worker.forward(job, y, state);
  }
  fill_padding(y, layout, 0);
  auto out = tape.record_all(
      {y, state}, {&input.u, &input.delta, &input.a, &input.b, &input.c, &input.skip, &input.state},
      [s = std::move(scan), du = input.u.gradient(), ddelta = input.delta.gradient(), da = input.a.gradient(),
       db = input.b.gradient(), dc = input.c.gradient(), dskip = input.skip.gradient(),
       dstate = input.state.gradient()](std::span<Tensor> dout) {
        const Tensor dy = dout[0].defined() ? dout[0] : Tensor::zeros(s.u.shape());
        const Shape sums{s.tiles(), s.batch, s.length, s.states};
        ScanGradients d{Tensor(s.u.shape()),
                        Tensor(s.u.shape()),
                        dout[1].defined() ? dout[1].unique() : Tensor::zeros({s.batch, s.channels, s.states}),
                        Tensor(sums),
                        Tensor(sums),
                        Tensor({s.jobs(), s.states + 1, kDiagonalTile})};
        run_backward(s, dy, d);
        const Tensor of_a(s.a.shape()), of_skip({s.channels});
        sum_rates(s, d, of_a, of_skip);
        for (const auto& [slot, sum] : {std::pair{&db, &d.b}, {&dc, &d.c}}) {
          const Tensor total = sum_of_tiles(*sum, s.b.shape());
          fill_padding(total, s.layout, 0);
          add_gradient(*slot, total);
        }
        add_gradient(du, d.u);
        add_gradient(ddelta, d.delta);
        add_gradient(da, of_a);
        add_gradient(dskip, of_skip);
        add_gradient(dstate, d.state);
      });
  return {out[0], out[1]};
}

void diagonal_scan_step(Matrix y, Matrix u, Matrix delta, const Real* a, Matrix b, Matrix c, const Real* skip,
                        Tensor& state) {
  const Index states = b.cols, size = u.cols * states;
  for (Index lane = 0; lane < u.rows; ++lane)
    kernels::diagonal_step(y.row(lane), state.data() + lane * size, u.row(lane), delta.row(lane), a, b.row(lane),
                           c.row(lane), skip, u.cols, states);
}

}  // namespace quipu::inline QUIPU_REAL_NS
