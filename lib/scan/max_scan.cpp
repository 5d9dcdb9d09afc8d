#include "scan/max_scan.h"

#include <algorithm>

#include "scan/head_rows.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// fn(lane, head, span) over the documents of all lanes and heads, those of one in order; the last first if `reverse`.
template <typename F>
void for_documents(const Layout& layout, Index heads, bool reverse, F&& fn) {
#pragma omp parallel for schedule(static)
  for (Index job = 0; job < layout.batch * heads; ++job) {
    auto spans = layout.spans(job / heads);
    if (reverse) std::reverse(spans.begin(), spans.end());
    for (const Span& span : spans) fn(job / heads, job % heads, span);
  }
}

struct Backward {
  Layout layout;
  Index heads;
  Tensor features, log_decay, first;  ///< first: the maximum before the batch, [B,H]

  /// du from the gradients of features and decay, and dm in place.
  void run(const Tensor& du, const Tensor& dm, const Tensor& dfeatures, const Tensor& dg) const {
    const Index width = features.extent(3);
    for_documents(layout, heads, true, [&](Index lane, Index head, const Span& span) {
      Real& dstate = dm.data()[lane * heads + head];
      double sum = static_cast<double>(dstate);
      for (Index t = span.end - 1; t >= span.begin; --t) {
        const Index row = (lane * layout.length + t) * heads + head;
        const bool begins = t == span.begin && (span.fresh || first.data()[lane * heads + head] <= kNoMaximum);
        const Real* const phi = features.data() + row * width;
        Real* const out = du.data() + row * width;
        kernels::multiply(out, phi, dfeatures.data() + row * width, width);
        const double through_decay = begins ? 0 : static_cast<double>(dg.data()[row]);
        sum -= static_cast<double>(kernels::sum(out, width)) + through_decay;
        if (begins || log_decay.data()[row] < 0) {  // the largest of this token is the new maximum
          out[std::max_element(phi, phi + width) - phi] += static_cast<Real>(sum);
          sum = 0;
        }
        sum += through_decay;
      }
      dstate = span.fresh ? Real{0} : static_cast<Real>(sum);
    });
    fill_padding(du, layout, 0);
  }
};

}  // namespace

MaxScanOutput max_scan(Tape& tape, const Var& exponents, const Var& state, const Layout& layout) {
  const OpScope op_scope("max scan");
  const Index heads = exponents.extent(2), width = exponents.extent(3);
  require_shape("max scan", exponents.shape(), {layout.batch, layout.length, heads, width});
  if (state.defined()) require_shape("max scan: state", state.shape(), {layout.batch, heads});
  const Tensor phi(exponents.shape()), g({layout.batch, layout.length, heads});
  const Tensor first = state.defined() ? state.value() : Tensor::full({layout.batch, heads}, kNoMaximum);
  const Tensor m = first.clone();
  for_documents(layout, heads, false, [&](Index lane, Index head, const Span& span) {
    Real& largest = m.data()[lane * heads + head];
    if (span.fresh) largest = kNoMaximum;
    for (Index t = span.begin; t < span.end; ++t) {
      const Index row = (lane * layout.length + t) * heads + head;
      g.data()[row] = max_scan_step(phi.data() + row * width, exponents.value().data() + row * width, &largest, width);
    }
  });
  fill_padding(phi, layout, 0);
  fill_padding(g, layout, 0);
  auto out = tape.record_all({phi, g, m}, {&exponents, &state},
                             [job = Backward{layout, heads, phi, g, first}, du = exponents.gradient(),
                              dm = state.gradient()](std::span<Tensor> dout) {
                               if (!dout[0].defined()) dout[0] = Tensor::zeros(job.features.shape());
                               if (!dout[1].defined()) dout[1] = Tensor::zeros(job.log_decay.shape());
                               Tensor dexponents(job.features.shape());
                               Tensor dstate = dout[2].defined() ? dout[2].unique() : Tensor::zeros(job.first.shape());
                               job.run(dexponents, dstate, dout[0], dout[1]);
                               add_gradient(du, std::move(dexponents));
                               add_gradient(dm, std::move(dstate));
                             });
  return {out[0], out[1], out[2]};
}

Real max_scan_step(Real* features, const Real* exponents, Real* state, Index n) {
  const Real before = *state;
  *state = std::max(before, kernels::max(exponents, n));
  kernels::exp_shifted(features, exponents, *state, n);
  return before <= kNoMaximum ? Real{0} : before - *state;
}

}  // namespace quipu::inline QUIPU_REAL_NS
