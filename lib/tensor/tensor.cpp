#include "tensor/tensor.h"

#include <algorithm>

#include "base/blocks.h"
#include "tensor/arena.h"

namespace quipu::inline QUIPU_REAL_NS {

Tensor::Tensor(const Shape& shape)
    : storage_(static_cast<Real*>(arena::allocate(static_cast<std::size_t>(shape.count()) * sizeof(Real))),
               [](Real* block) { arena::release(block); }),
      shape_(shape) {}

Tensor Tensor::zeros(const Shape& shape) { return full(shape, 0); }

Tensor Tensor::full(const Shape& shape, Real value) {
  Tensor tensor(shape);
  for_blocks(tensor.count(), kElementBlock,
             [&](Index begin, Index end) { std::fill(tensor.data() + begin, tensor.data() + end, value); });
  return tensor;
}

Tensor Tensor::from(const Shape& shape, std::span<const double> values) {
  if (static_cast<Index>(values.size()) != shape.count())
    throw ShapeError("tensor: {} values for the shape {}", values.size(), shape.text());
  Tensor tensor(shape);
  std::transform(values.begin(), values.end(), tensor.data(), [](double x) { return static_cast<Real>(x); });
  return tensor;
}

Tensor Tensor::alias(Real* data, const Shape& shape) {
  Tensor tensor;
  tensor.storage_ = std::shared_ptr<Real>(data, [](Real*) {});
  tensor.shape_ = shape;
  return tensor;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor copy(shape_);
  for_blocks(count(), kElementBlock,
             [&](Index begin, Index end) { std::copy(data() + begin, data() + end, copy.data() + begin); });
  return copy;
}

Tensor& Tensor::unique() {
  if (defined() && !is_unique()) *this = clone();
  return *this;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.count() != count()) throw ShapeError("tensor: {} cannot be seen as {}", shape_.text(), shape.text());
  Tensor other = *this;
  other.shape_ = shape;
  return other;
}

Tensor Tensor::part(Index begin, const Shape& shape) const {
  Tensor other;
  other.storage_ = std::shared_ptr<Real>(storage_, data() + begin);
  other.shape_ = shape;
  return other;
}

}  // namespace quipu::inline QUIPU_REAL_NS
