#pragma once
#include <memory>

#include "tensor/view.h"

namespace quipu::inline QUIPU_REAL_NS {

/// A row-major array of Real in storage of its own: 64-byte aligned, from the arena. A Tensor is a handle: copies
/// share the storage, `clone` does not. Whoever writes into a tensor that may be shared takes `unique` first.
class Tensor {
 public:
  Tensor() = default;
  /// Contents undefined (NaN in debug builds).
  explicit Tensor(const Shape& shape);
  static Tensor zeros(const Shape& shape);
  static Tensor full(const Shape& shape, Real value);
  static Tensor from(const Shape& shape, std::span<const double> values);
  /// A window on memory that somebody else owns and keeps alive.
  static Tensor alias(Real* data, const Shape& shape);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Index extent(int axis) const { return shape_[axis]; }
  Index count() const { return storage_ ? shape_.count() : 0; }
  Real* data() const { return storage_.get(); }
  std::span<Real> span() const { return {data(), static_cast<std::size_t>(count())}; }
  View view() const { return {data(), shape_}; }
  Matrix matrix() const { return view().matrix(); }

  /// Whether no other tensor shares the storage.
  bool is_unique() const { return storage_.use_count() == 1; }
  Tensor clone() const;
  /// Makes the storage this tensor's own (copying where it is shared), for writing in place.
  Tensor& unique();
  /// The same storage under another shape of the same count.
  Tensor reshaped(const Shape& shape) const;
  /// Elements [begin, begin + shape.count()) of the same storage.
  Tensor part(Index begin, const Shape& shape) const;

 private:
  std::shared_ptr<Real> storage_;
  Shape shape_;
};

}  // namespace quipu::inline QUIPU_REAL_NS
