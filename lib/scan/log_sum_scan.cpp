#include "scan/log_sum_scan.h"

#include <algorithm>
#include <array>

#include "scan/head_rows.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kChannelBlock = 64;

/// Calls fn(lane, first channel, channels) for blocks of channels, in parallel: a lane's time runs within a block.
template <typename F>
void for_channels(Index lanes, Index channels, F&& fn) {
  const Index blocks = (channels + kChannelBlock - 1) / kChannelBlock;
#pragma omp parallel for schedule(static)
  for (Index job = 0; job < lanes * blocks; ++job) {
    const Index first = job % blocks * kChannelBlock;
    fn(job / blocks, first, std::min(kChannelBlock, channels - first));
  }
}

struct Backward {
  Layout layout;
  Tensor g, w;
  Index channels;

  /// ds from dg and dw, and dz in place.
  void run(const Tensor& ds, const Tensor& dz, const Tensor& dg, const Tensor& dw) const {
    for_channels(layout.batch, channels, [&](Index lane, Index first, Index n) {
      Real* const dstate = dz.data() + lane * channels + first;
      const auto spans = layout.spans(lane);
      for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
        for (Index t = span->end - 1; t >= span->begin; --t) {
          const Index at = (lane * layout.length + t) * channels + first;
          kernels::log_sum_step_backward(ds.data() + at, dstate, dg.data() + at, dw.data() + at, g.data() + at,
                                         w.data() + at, n);
        }
        if (span->fresh) std::fill_n(dstate, n, Real{0});
      }
    });
    fill_padding(ds, layout, 0);
  }
};

}  // namespace

LogSumScanOutput log_sum_scan(Tape& tape, const Var& logits, const Var& state, const Layout& layout) {
  const OpScope op_scope("log sum scan");
  const Index channels = logits.value().count() / (layout.batch * layout.length);
  Shape per_lane{std::span<const Index>(logits.shape().begin() + 1, logits.shape().end())};
  per_lane[0] = layout.batch;
  if (logits.extent(0) != layout.batch || logits.extent(1) != layout.length)
    throw ShapeError("log-sum scan: the logits have the shape {} for {} lanes of {} tokens", logits.shape().text(),
                     layout.batch, layout.length);
  if (state.defined()) require_shape("log-sum scan: state", state.shape(), per_lane);

  const Tensor g(logits.shape()), w(logits.shape());
  const Tensor z = state.defined() ? state.value().clone() : Tensor::full(per_lane, kernels::kNoLogSum);
  for_channels(layout.batch, channels, [&](Index lane, Index first, Index n) {
    std::array<Real, kChannelBlock> low{};
    Real* const total = z.data() + lane * channels + first;
    for (const Span& span : layout.spans(lane)) {
      if (span.fresh) std::fill_n(total, n, kernels::kNoLogSum);
      for (Index t = span.begin; t < span.end; ++t) {
        const Index at = (lane * layout.length + t) * channels + first;
        kernels::log_sum_step(total, low.data(), g.data() + at, w.data() + at, logits.value().data() + at, n);
      }
    }
  });
  for (const Tensor* x : {&g, &w}) fill_padding(*x, layout, 0);

  auto out = tape.record_all({g, w, z}, {&logits, &state},
                             [job = Backward{layout, g, w, channels}, per_lane, ds = logits.gradient(),
                              dz = state.gradient()](std::span<Tensor> dout) {
                               for (Tensor* d : {&dout[0], &dout[1]})
                                 if (!d->defined()) *d = Tensor::zeros(job.g.shape());
                               Tensor dlogits(job.g.shape());
                               Tensor dstate = dout[2].defined() ? dout[2].unique() : Tensor::zeros(per_lane);
                               job.run(dlogits, dstate, dout[0], dout[1]);
                               add_gradient(ds, std::move(dlogits));
                               add_gradient(dz, std::move(dstate));
                             });
  return {out[0], out[1], out[2]};
}

void log_sum_scan_step(const Real* logits, Real* z, Real* log_decay, Real* weight, Index n) {
  for (Index first = 0; first < n; first += kChannelBlock) {
    std::array<Real, kChannelBlock> low{};
    kernels::log_sum_step(z + first, low.data(), log_decay + first, weight + first, logits + first,
                          std::min(kChannelBlock, n - first));
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
