#include "tensor/tensor.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "tensor/arena.h"

namespace quipu {

TEST_CASE("shapes count elements, rows and axes from either end") {
  const Shape shape{2, 7, 3, 5};
  CHECK(shape.count() == 210);
  CHECK(shape.rows() == 42);
  CHECK(shape.count_before(2) == 14);
  CHECK(shape[-1] == 5);
  CHECK(shape[1] == 7);
  CHECK(shape.text() == "[2, 7, 3, 5]");
  CHECK(Shape().count() == 1);
  CHECK(Shape().rows() == 1);
  CHECK(Shape{0, 3}.count() == 0);
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), InternalError);
  CHECK_THROWS_WITH_AS(require_shape("add", Shape{2, 3}, Shape{3, 2}),
                       "add: the shape is [2, 3] where [3, 2] is needed", ShapeError);
}

TEST_CASE("a tensor is a handle: copies share, clones do not, unique copies where shared") {
  Tensor a = Tensor::full({2, 3}, 1);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % arena::kAlignment == 0);
  CHECK(a.is_unique());
  const Tensor b = a;
  CHECK(b.data() == a.data());
  CHECK_FALSE(a.is_unique());
  const Tensor c = a.clone();
  CHECK(c.data() != a.data());
  a.unique().data()[0] = 5;
  CHECK(a.data() != b.data());
  CHECK(b.data()[0] == 1);
  const Real* const own = a.data();
  CHECK(a.unique().data() == own);
  CHECK_FALSE(Tensor().defined());
  CHECK_FALSE(Tensor().clone().defined());
}

TEST_CASE("parts and reshaped tensors share storage and keep it alive") {
  Tensor part;
  {
    const Tensor whole = Tensor::from({6}, std::vector<double>{0, 1, 2, 3, 4, 5});
    part = whole.part(2, {2, 2});
    CHECK_FALSE(part.is_unique());
    CHECK(whole.reshaped({3, 2}).matrix()(2, 1) == 5);
    CHECK_THROWS_AS(whole.reshaped({4}), ShapeError);
  }
  CHECK(part.is_unique());
  CHECK(part.data()[3] == 5);
  CHECK_THROWS_AS(Tensor::from({3}, std::vector<double>{1, 2}), ShapeError);
}

TEST_CASE("an alias is a window on other memory") {
  std::vector<Real> memory = {1, 2, 3};
  {
    const Tensor window = Tensor::alias(memory.data(), {3});
    window.data()[1] = 7;
  }
  CHECK(memory[1] == 7);
}

TEST_CASE("matrices slice rows and columns with a stride") {
  const Tensor a = Tensor::from({2, 3, 2}, std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Matrix m = a.matrix();
  CHECK(m.rows == 6);
  CHECK(m.cols == 2);
  const Matrix head{a.data() + 2, 2, 2, 6};
  CHECK(head(1, 1) == 9);
  CHECK(head.slice(1, 2).row(0)[0] == 8);
  CHECK(m.columns(1, 2)(5, 0) == 11);
}

}  // namespace quipu
