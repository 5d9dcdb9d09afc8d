#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.h"
#include "base/real.h"

namespace quipu {

/// Extents of an array, outermost first; at most kMaxRank axes.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<Index> extents) : Shape(std::span<const Index>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const Index> extents);

  int rank() const { return rank_; }
  Index operator[](int axis) const { return extent_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  Index& operator[](int axis) { return extent_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  /// Number of elements; 1 for rank 0.
  Index count() const;
  /// Number of elements of all axes but the last.
  Index rows() const { return rank_ == 0 ? 1 : count_before(rank_ - 1); }
  Index count_before(int axis) const;
  const Index* begin() const { return extent_.data(); }
  const Index* end() const { return extent_.data() + rank_; }
  bool operator==(const Shape& other) const;
  /// As "[2, 7, 16]".
  std::string text() const;

 private:
  std::array<Index, kMaxRank> extent_{};
  int rank_ = 0;
};

inline namespace QUIPU_REAL_NS {

/// A non-owning matrix of `rows` x `cols`, rows `stride` elements apart, columns contiguous. What products and
/// row kernels work on; a head of a [B,T,H,K] tensor is such a matrix with stride H*K.
struct Matrix {
  Real* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  Real* row(Index r) const { return data + r * stride; }
  Real& operator()(Index r, Index c) const { return data[r * stride + c]; }
  /// Rows [begin, end).
  Matrix slice(Index begin, Index end) const { return {data + begin * stride, end - begin, cols, stride}; }
  /// Columns [begin, end).
  Matrix columns(Index begin, Index end) const { return {data + begin, rows, end - begin, stride}; }
};

/// A non-owning row-major contiguous array.
struct View {
  Real* data = nullptr;
  Shape shape;

  Index count() const { return shape.count(); }
  std::span<Real> span() const { return {data, static_cast<std::size_t>(count())}; }
  /// All axes but the last as rows.
  Matrix matrix() const { return {data, shape.rows(), shape[-1], shape[-1]}; }
};

}  // namespace QUIPU_REAL_NS

/// Throws ShapeError naming `what` unless the shapes agree.
void require_shape(const char* what, const Shape& got, const Shape& wanted);

}  // namespace quipu
