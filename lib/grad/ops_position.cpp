#include "grad/ops_position.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/blocks.h"
#include "grad/reuse.h"
#include "tensor/kernels.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kPositionBlock = 64;

double inverse_frequency(double base, Index i, Index head_width) {
  return std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
}

double sinusoid_frequency(SinusoidLayout layout, Index i, Index width) {
  if (layout != SinusoidLayout::fairseq) return inverse_frequency(10000, i, width);
  return width == 2 ? 1 : std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width / 2 - 1));
}

/// Rotates pairs [first, first + n) of one head by the given cosines and sines, the other way round where `back`.
void rotate_head(Real* y, const Real* x, const Real* cosine, const Real* sine, RopeLayout layout, Index first, Index n,
                 Index width, bool back) {
  if (layout == RopeLayout::half) {
    const Index second = width / 2 + first;
    kernels::rotate(y + first, y + second, x + first, x + second, cosine, sine, back ? -1 : 1, n);
    return;
  }
  const Real sign = back ? -1 : 1;
  for (Index i = 0; i < n; ++i) {
    const Real a = x[2 * (first + i)];
    const Real b = x[2 * (first + i) + 1];
    const Real s = sign * sine[i];
    y[2 * (first + i)] = a * cosine[i] - b * s;
    y[2 * (first + i) + 1] = b * cosine[i] + a * s;
  }
}

void check_rope(const Shape& x, Index positions) {
  if (x.rank() < 2 || x[-1] % 2 != 0)
    throw ShapeError("rope: the shape {} has no heads of even width as its last two axes", x.text());
  if (x.count_before(x.rank() - 2) != positions)
    throw ShapeError("rope: {} positions for the shape {}", positions, x.text());
}

void rotate_all(const Tensor& y, const Tensor& x, const RopeAngles& angles, RopeLayout layout, Index heads, bool back) {
  const Index half = angles.cosine.extent(1);
  const Index width = 2 * half;
  for_blocks(angles.cosine.extent(0), kPositionBlock, [&](Index begin, Index end) {
    for (Index p = begin; p < end; ++p) {
      for (Index h = 0; h < heads; ++h) {
        const Index at = (p * heads + h) * width;
        rotate_head(y.data() + at, x.data() + at, angles.cosine.data() + p * half, angles.sine.data() + p * half,
                    layout, 0, half, width, back);
      }
    }
  });
}

}  // namespace

void sinusoids_into(SinusoidLayout layout, std::span<const std::int64_t> positions, Matrix rows) {
  if (rows.cols % 2 != 0) throw ShapeError("sinusoids: the width is {}; it must be even", rows.cols);
  const Index half = rows.cols / 2;
  const bool interleaved = layout == SinusoidLayout::interleaved;
  for_blocks(static_cast<Index>(positions.size()), kPositionBlock, [&](Index begin, Index end) {
    for (Index i = 0; i < half; ++i) {
      const double frequency = sinusoid_frequency(layout, i, rows.cols);
      for (Index p = begin; p < end; ++p) {
        const double angle = static_cast<double>(positions[static_cast<std::size_t>(p)]) * frequency;
        rows(p, interleaved ? 2 * i : i) = static_cast<Real>(std::sin(angle));
        rows(p, interleaved ? 2 * i + 1 : half + i) = static_cast<Real>(std::cos(angle));
      }
    }
  });
}

Tensor sinusoids(SinusoidLayout layout, std::span<const std::int64_t> positions, Index width) {
  Tensor rows({static_cast<Index>(positions.size()), width});
  sinusoids_into(layout, positions, rows.matrix());
  return rows;
}

RopeAngles rope_angles(std::span<const std::int64_t> positions, Index head_width, double base) {
  const auto count = static_cast<Index>(positions.size());
  const Index half = head_width / 2;
  RopeAngles angles{Tensor({count, half}), Tensor({count, half})};
  for_blocks(count, kPositionBlock, [&](Index begin, Index end) {
    for (Index i = 0; i < half; ++i) {
      const double frequency = inverse_frequency(base, i, head_width);
      for (Index p = begin; p < end; ++p) {
        const double angle = static_cast<double>(positions[static_cast<std::size_t>(p)]) * frequency;
        angles.cosine.data()[p * half + i] = static_cast<Real>(std::cos(angle));
        angles.sine.data()[p * half + i] = static_cast<Real>(std::sin(angle));
      }
    }
  });
  return angles;
}

Var rope(Tape& tape, const Var& x, const RopeAngles& angles, RopeLayout layout) {
  const OpScope op_scope("rope");
  check_rope(x.shape(), angles.cosine.extent(0));
  if (2 * angles.cosine.extent(1) != x.extent(-1))
    throw ShapeError("rope: angles for heads of width {} and heads of width {}", 2 * angles.cosine.extent(1),
                     x.extent(-1));
  Tensor y(x.shape());
  rotate_all(y, x.value(), angles, layout, x.extent(-2), false);
  return tape.record(std::move(y), {&x}, [angles, layout, slot = x.gradient(), heads = x.extent(-2)](const Tensor& dy) {
    const Tensor dx = reuse_or_new(dy);
    rotate_all(dx, dy, angles, layout, heads, true);
    slot->add(dx);
  });
}

Var rope(Tape& tape, const Var& x, std::span<const std::int64_t> positions, double base, RopeLayout layout) {
  check_rope(x.shape(), static_cast<Index>(positions.size()));
  return rope(tape, x, rope_angles(positions, x.extent(-1), base), layout);
}

void rope_into(View y, View x, std::span<const std::int64_t> positions, double base, RopeLayout layout) {
  check_rope(x.shape, static_cast<Index>(positions.size()));
  const Index heads = x.shape[-2];
  const Index width = x.shape[-1];
  constexpr Index kPairs = 64;
  std::array<Real, kPairs> cosine, sine;
  for (Index b = 0; b < static_cast<Index>(positions.size()); ++b) {
    for (Index first = 0; first < width / 2; first += kPairs) {
      const Index n = std::min(kPairs, width / 2 - first);
      for (Index i = 0; i < n; ++i) {
        const double angle =
            static_cast<double>(positions[static_cast<std::size_t>(b)]) * inverse_frequency(base, first + i, width);
        cosine[static_cast<std::size_t>(i)] = static_cast<Real>(std::cos(angle));
        sine[static_cast<std::size_t>(i)] = static_cast<Real>(std::sin(angle));
      }
      for (Index h = 0; h < heads; ++h) {
        const Index at = (b * heads + h) * width;
        rotate_head(y.data + at, x.data + at, cosine.data(), sine.data(), layout, first, n, width, false);
      }
    }
  }
}

}  // namespace quipu::inline QUIPU_REAL_NS
