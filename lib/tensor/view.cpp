#include "tensor/view.h"

#include <algorithm>

namespace quipu {

Shape::Shape(std::span<const Index> extents) : rank_(static_cast<int>(extents.size())) {
  if (extents.size() > kMaxRank)
    throw InternalError("an array of {} axes; at most {} are supported", extents.size(), kMaxRank);
  std::copy(extents.begin(), extents.end(), extent_.begin());
}

Index Shape::count() const { return count_before(rank_); }

Index Shape::count_before(int axis) const {
  Index product = 1;
  for (int i = 0; i < axis; ++i) product *= extent_[static_cast<std::size_t>(i)];
  return product;
}

bool Shape::operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::string Shape::text() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + "]";
}

void require_shape(const char* what, const Shape& got, const Shape& wanted) {
  if (!(got == wanted)) throw ShapeError("{}: the shape is {} where {} is needed", what, got.text(), wanted.text());
}

}  // namespace quipu
