#include "grad/row_norm.h"

#include <array>
#include <cmath>

#include "base/blocks.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {

RowNorm::RowNorm(const char* what, NormKind the_kind, double the_eps, const Shape& x, const Tensor& weight,
                 const Tensor& bias)
    : kind(the_kind), eps(the_eps), width(x.rank() == 0 ? 0 : x[-1]), groups(1) {
  if (width == 0) throw ShapeError("{}: the shape {} has no last axis to normalise over", what, x.text());
  const Tensor& affine = weight.defined() ? weight : bias;
  if (!affine.defined()) return;
  if (affine.count() != width) groups = x.rank() > 1 ? x[-2] : 0;
  if (affine.count() != groups * width)
    throw ShapeError("{}: {} weights do not fit the shape {}", what, affine.count(), x.text());
  if (bias.defined() && bias.count() != affine.count())
    throw ShapeError("{}: {} weights, but {} biases", what, affine.count(), bias.count());
}

kernels::RowScale RowNorm::scale_of(const Real* x) const {
  const auto inverse = [this](double square) { return static_cast<Real>(1 / std::sqrt(square + eps)); };
  if (kind == NormKind::layer) {
    const kernels::RowMoments moments = kernels::row_moments(x, width);
    return {moments.mean, inverse(moments.variance)};
  }
  const double squares = kernels::sum_of_squares(x, width);
  return {0, inverse(kind == NormKind::rms ? squares / static_cast<double>(width) : squares)};
}

kernels::RowSums RowNorm::means(kernels::RowSums sums) const {
  const auto n = static_cast<Real>(width);
  return {kind == NormKind::layer ? sums.plain / n : 0, kind == NormKind::l2 ? sums.against : sums.against / n};
}

WeightSums::WeightSums(std::shared_ptr<Gradient> dweight, std::shared_ptr<Gradient> dbias, Index blocks, Index columns)
    : dweight_(std::move(dweight)),
      dbias_(std::move(dbias)),
      blocks_(blocks),
      columns_(columns),
      rows_(dbias_ ? 2 : 1) {
  if (dweight_ || dbias_) partial_ = Tensor({blocks, rows_, columns});
}

void WeightSums::clear(Index block) const { kernels::fill(weight(block), 0, rows_ * columns_); }

void WeightSums::finish() const {
  if (dweight_) finish(*dweight_, 0);
  if (dbias_) finish(*dbias_, 1);
}

void WeightSums::finish(Gradient& slot, Index row) const {
  const auto [target, beta] = slot.target(1, columns_);
  Real* const out = target.data;
  const bool adds = beta != 0;
  constexpr Index kColumns = 64;
  for_blocks(columns_, kColumns, [&](Index begin, Index end) {
    std::array<double, kColumns> sums{};
    for (Index block = 0; block < blocks_; ++block) {
      const Real* const from = weight(block) + row * columns_ + begin;
      for (Index c = 0; c < end - begin; ++c) sums[static_cast<std::size_t>(c)] += from[c];
    }
    for (Index c = begin; c < end; ++c) {
      const double sum = sums[static_cast<std::size_t>(c - begin)];
      out[c] = static_cast<Real>(adds ? out[c] + sum : sum);
    }
  });
}

}  // namespace quipu::inline QUIPU_REAL_NS
