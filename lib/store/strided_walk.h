#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace quipu {

/// The places of a strided array's numbers, one after another in row-major order of its shape (at most 8 axes).
class StridedWalk {
 public:
  StridedWalk(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)) {}

  /// The place of the next number, in numbers from the first one's.
  std::uint64_t next() {
    const std::int64_t place = place_;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      place_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) break;
      place_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
    return static_cast<std::uint64_t>(place);
  }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
  std::array<std::int64_t, 8> index_ = {};
  std::int64_t place_ = 0;
};

/// The strides of an array whose last axis is the fastest and which has no gaps.
inline std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) strides[axis] = step;
  return strides;
}

/// The row-major places of an array's numbers, in the order in which the first axis is the fastest.
inline StridedWalk fortran_walk(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides = row_major_strides(shape);
  std::ranges::reverse(strides);
  return {{shape.rbegin(), shape.rend()}, std::move(strides)};
}

}  // namespace quipu
