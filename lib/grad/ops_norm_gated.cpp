#include <vector>

#include "base/blocks.h"
#include "grad/ops_norm.h"
#include "grad/reuse.h"
#include "grad/row_norm.h"
#include "tensor/activation.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using kernels::RowScale;

/// y = n silu(gate), n = x^ w.
struct KeptGated {
  RowNorm norm;
  Tensor x, gate, weight;
  RowScales scales;
  std::shared_ptr<Gradient> dx, dgate, dweight;

  void backward(const Tensor& dy) const {
    const Index rows = x.count() / norm.width;
    const Index block = kTokenBlock * norm.groups;
    const WeightSums sums(dweight, nullptr, (rows + block - 1) / block, norm.groups * norm.width);
    const Tensor out = reuse_or_new(dy);
    const Tensor out_gate(gate.shape());
    for_blocks(rows, block, [&](Index begin, Index end) {
      if (sums.wanted()) sums.clear(begin / block);
      std::vector<Real> scratch(static_cast<std::size_t>(2 * norm.width));
      for (Index r = begin; r < end; ++r) row(dy, out, out_gate, sums, begin / block, r, scratch.data());
    });
    sums.finish();
    add_gradient(dx, out);
    add_gradient(dgate, out_gate);
  }

  void row(const Tensor& dy, const Tensor& out, const Tensor& out_gate, const WeightSums& sums, Index block, Index r,
           Real* normal) const {
    const Index n = norm.width;
    const Index at = r * n;
    Real* const dnormal = normal + n;
    const RowScale by = scales.at(r);
    const Real* const v = x.data() + at;
    const Real* const w = norm.part(weight, r);
    kernels::normalize_row(normal, v, by, w, nullptr, n);
    kernels::gated_backward(Activation::silu, out_gate.data() + at, dnormal, dy.data() + at, gate.data() + at, normal,
                            n);
    if (sums.wanted()) kernels::norm_row_weights(sums.weight(block) + r % norm.groups * n, nullptr, dnormal, v, by, n);
    const auto less = norm.means(kernels::norm_row_sums(dnormal, v, by, w, n));
    kernels::norm_row_backward(out.data() + at, dnormal, v, by, w, less, n);
  }
};

RowScale gated_row(const RowNorm& norm, Real* y, const Real* x, const Real* gate, const Real* weight) {
  const RowScale by = norm.scale_of(x);
  kernels::normalize_row(y, x, by, weight, nullptr, norm.width);
  kernels::gated(Activation::silu, y, gate, y, norm.width);
  return by;
}

}  // namespace

Var rms_norm_gated(Tape& tape, const Var& x, const Var& gate, const Var& weight, double eps) {
  const OpScope op_scope("gated norm");
  require_shape("gated rms norm", gate.shape(), x.shape());
  const RowNorm norm("gated rms norm", NormKind::rms, eps, x.shape(), weight.value(), {});
  const Index rows = x.value().count() / norm.width;
  Tensor y(x.shape());
  const RowScales scales(rows);
  for_blocks(rows, kTokenBlock * norm.groups, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const Index at = r * norm.width;
      scales.set(r, gated_row(norm, y.data() + at, x.value().data() + at, gate.value().data() + at,
                              norm.part(weight.value(), r)));
    }
  });
  KeptGated kept{norm,   x.value(),    gate.value(),    weight.value(),
                 scales, x.gradient(), gate.gradient(), weight.gradient()};
  return tape.record(std::move(y), {&x, &gate, &weight}, [kept](const Tensor& dy) { kept.backward(dy); });
}

void rms_norm_gated_into(View y, View x, View gate, const Tensor& weight, double eps) {
  require_shape("gated rms norm", gate.shape, x.shape);
  const RowNorm norm("gated rms norm", NormKind::rms, eps, x.shape, weight, {});
  for (Index r = 0; r * norm.width < x.count(); ++r) {
    const Index at = r * norm.width;
    gated_row(norm, y.data + at, x.data + at, gate.data + at, norm.part(weight, r));
  }
}

Var softmax_rows(Tape& tape, const Var& x, Real scale) {
  const OpScope op_scope("softmax");
  const Matrix in = x.value().matrix();
  Tensor y(x.shape());
  for_blocks(in.rows, kTokenBlock, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) kernels::softmax_row(y.matrix().row(r), in.row(r), scale, in.cols);
  });
  return tape.record(y, {&x}, [y, scale, slot = x.gradient()](const Tensor& dy) {
    const Tensor dx = reuse_or_new(dy);
    const Matrix p = y.matrix();
    for_blocks(p.rows, kTokenBlock, [&](Index begin, Index end) {
      for (Index at = begin * p.cols; at < end * p.cols; at += p.cols)
        kernels::softmax_row_backward(dx.data() + at, dy.data() + at, p.data + at, scale, p.cols);
    });
    slot->add(dx);
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
