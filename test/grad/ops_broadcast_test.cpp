#include "grad/ops_broadcast.h"

#include "grad/ops_rows.h"
#include "grad/ops_shape.h"
#include "op_checks.h"

using namespace quipu;

TEST_CASE("columns, rows and heads scaled") {
  const Tensor x = random_tensor({2, 70, 3, 5}, 1), a = random_tensor({2, 70, 3, 5}, 2);
  const Tensor column = random_tensor({5}, 3), row = random_tensor({2, 70, 3}, 4), head = random_tensor({3}, 5);
  Tape tape(false);
  const Tensor by_column = scale_columns(tape, x, column).value(), by_row = scale_rows(tape, x, row).value();
  const Tensor by_head = add_scaled_heads(tape, a, x, head).value();
  for (Index i = 0; i < x.count(); ++i) {
    const Real v = x.data()[i];
    REQUIRE(by_column.data()[i] == v * column.data()[i % 5]);
    REQUIRE(by_row.data()[i] == v * row.data()[i / 5]);
    REQUIRE(std::abs(by_head.data()[i] - (a.data()[i] + v * head.data()[i / 5 % 3])) < 1e-5);
  }
  const Operation ops[] = {
      [](Tape& t, const std::vector<Var>& in) { return std::vector{scale_columns(t, in[0], in[2])}; },
      [](Tape& t, const std::vector<Var>& in) { return std::vector{scale_rows(t, in[0], in[3])}; },
      [](Tape& t, const std::vector<Var>& in) { return std::vector{add_scaled_heads(t, in[1], in[0], in[4])}; },
      [](Tape& t, const std::vector<Var>& in) {  // all of them into the same gradients
        const Var y = scale_columns(t, scale_rows(t, in[0], in[3]), in[2]);
        return std::vector{add_scaled_heads(t, scale_columns(t, y, in[2]), in[0], in[4])};
      }};
  check_gradients(ops[0], {x, a, column});
  for (const Operation& op : ops) {
    check_gradients(op, {x, a, column, row, head});
    check_threads(op, {x, a, column, row, head});
  }
  CHECK_THROWS_AS(scale_columns(tape, x, head), ShapeError);
  CHECK_THROWS_AS(scale_rows(tape, x, column), ShapeError);
  CHECK_THROWS_AS(add_scaled_heads(tape, a, x, column), ShapeError);
}

TEST_CASE("columns split") {
  const Tensor x = random_tensor({2, 7, 9}, 1);
  Tape tape(false);
  const std::vector<Var> pieces = split_columns(tape, x, {2, 1, 6});
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[2].shape() == Shape{2, 7, 6});
  for (Index r = 0; r < 14; ++r) {
    CHECK(pieces[0].value().data()[r * 2 + 1] == x.data()[r * 9 + 1]);
    CHECK(pieces[1].value().data()[r] == x.data()[r * 9 + 2]);
    CHECK(pieces[2].value().data()[r * 6 + 5] == x.data()[r * 9 + 8]);
  }
  check_gradients([](Tape& t, const std::vector<Var>& in) { return split_columns(t, in[0], {2, 1, 6}); }, {x});
  check_gradients(
      [](Tape& t, const std::vector<Var>& in) {
        return std::vector{split_columns(t, in[0], {4, 5})[1]};
      },
      {x});
  CHECK_THROWS_AS(split_columns(tape, x, {4, 4}), ShapeError);
}
