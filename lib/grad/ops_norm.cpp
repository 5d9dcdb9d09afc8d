#include "grad/ops_norm.h"

#include "base/blocks.h"
#include "grad/reuse.h"
#include "grad/row_norm.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

using kernels::RowScale;

/// fn(row) for all rows, in blocks of whole tokens.
template <typename F>
void for_rows(Index rows, Index groups, F&& fn) {
  for_blocks(rows, kTokenBlock * groups, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) fn(r);
  });
}

/// Everything that the backward pass of a normalisation without gate needs.
struct Kept {
  RowNorm norm;
  Tensor x, weight;
  RowScales scales;
  std::shared_ptr<Gradient> dx, dweight, dbias;

  void backward(const Tensor& dy) const {
    const Index rows = x.count() / norm.width;
    const Index block = kTokenBlock * norm.groups;
    const WeightSums sums(dweight, dbias, (rows + block - 1) / block, norm.groups * norm.width);
    const Tensor out = dx ? reuse_or_new(dy) : Tensor();
    for_blocks(rows, block, [&](Index begin, Index end) {
      if (sums.wanted()) sums.clear(begin / block);
      for (Index r = begin; r < end; ++r) row(dy, out, sums, begin / block, r);
    });
    sums.finish();
    add_gradient(dx, out);
  }

  void row(const Tensor& dy, const Tensor& out, const WeightSums& sums, Index block, Index r) const {
    const Index at = r * norm.width;
    const Index part = r % norm.groups * norm.width;
    const RowScale by = scales.at(r);
    const Real* const g = dy.data() + at;
    const Real* const v = x.data() + at;
    if (sums.wanted()) {
      Real* const bias = sums.bias(block);
      kernels::norm_row_weights(sums.weight(block) + part, bias == nullptr ? nullptr : bias + part, g, v, by,
                                norm.width);
    }
    if (!dx) return;
    const Real* const w = norm.part(weight, r);
    const auto less = norm.means(kernels::norm_row_sums(g, v, by, w, norm.width));
    kernels::norm_row_backward(out.data() + at, g, v, by, w, less, norm.width);
  }
};

Var normalize(Tape& tape, const RowNorm& norm, const Var& x, const Var& weight, const Var& bias) {
  const OpScope op_scope("norm");
  const Index rows = x.value().count() / norm.width;
  Tensor y(x.shape());
  const RowScales scales(rows);
  for_rows(rows, norm.groups, [&](Index r) {
    const Real* const from = x.value().data() + r * norm.width;
    const RowScale by = norm.scale_of(from);
    scales.set(r, by);
    kernels::normalize_row(y.data() + r * norm.width, from, by, norm.part(weight.value(), r),
                           norm.part(bias.value(), r), norm.width);
  });
  Kept kept{norm, x.value(), weight.value(), scales, x.gradient(), weight.gradient(), bias.gradient()};
  return tape.record(std::move(y), {&x, &weight, &bias}, [kept](const Tensor& dy) { kept.backward(dy); });
}

void normalize_into(const RowNorm& norm, View y, View x, const Tensor& weight, const Tensor& bias) {
  for (Index r = 0; r * norm.width < x.count(); ++r) {
    const Real* const from = x.data + r * norm.width;
    kernels::normalize_row(y.data + r * norm.width, from, norm.scale_of(from), norm.part(weight, r), norm.part(bias, r),
                           norm.width);
  }
}

/// x [.., D] seen as [.., groups, D / groups].
Shape grouped(const Shape& x, Index groups) {
  if (x.rank() == 0 || groups < 1 || x[-1] % groups != 0)
    throw ShapeError("group norm: {} groups do not divide the last axis of {}", groups, x.text());
  return {x.rows(), groups, x[-1] / groups};
}

}  // namespace

Var layer_norm(Tape& tape, const Var& x, const Var& weight, const Var& bias, double eps) {
  return normalize(tape, {"layer norm", NormKind::layer, eps, x.shape(), weight.value(), bias.value()}, x, weight,
                   bias);
}

Var rms_norm(Tape& tape, const Var& x, const Var& weight, double eps) {
  return normalize(tape, {"rms norm", NormKind::rms, eps, x.shape(), weight.value(), {}}, x, weight, {});
}

Var l2_norm(Tape& tape, const Var& x, double eps) {
  return normalize(tape, {"l2 norm", NormKind::l2, eps, x.shape(), {}, {}}, x, {}, {});
}

Var group_norm(Tape& tape, const Var& x, Index groups, const Var& weight, const Var& bias, double eps) {
  const Shape shape = grouped(x.shape(), groups);
  return layer_norm(tape, x.reshaped(shape), weight, bias, eps).reshaped(x.shape());
}

void layer_norm_into(View y, View x, const Tensor& weight, const Tensor& bias, double eps) {
  normalize_into({"layer norm", NormKind::layer, eps, x.shape, weight, bias}, y, x, weight, bias);
}

void rms_norm_into(View y, View x, const Tensor& weight, double eps) {
  normalize_into({"rms norm", NormKind::rms, eps, x.shape, weight, {}}, y, x, weight, {});
}

void l2_norm_into(View y, View x, double eps) {
  normalize_into({"l2 norm", NormKind::l2, eps, x.shape, {}, {}}, y, x, {}, {});
}

void group_norm_into(View y, View x, Index groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Shape shape = grouped(x.shape, groups);
  layer_norm_into({y.data, shape}, {x.data, shape}, weight, bias, eps);
}

}  // namespace quipu::inline QUIPU_REAL_NS
