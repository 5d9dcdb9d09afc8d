#include "scan/relative_attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "op_checks.h"

using namespace quipu;

namespace {

constexpr Index kHeads = 2, kWidth = 3, kDim = kHeads * kWidth;

struct Problem {
  RelativeAttentionInput form;  ///< without its arrays
  Index own, past, distances;
  Shape y;

  std::vector<Tensor> inputs() const {
    return {random_tensor({own, 3 * kDim}, 1), random_tensor({past, 2 * kDim}, 2), random_tensor({distances, kDim}, 3),
            random_tensor({kHeads, kWidth}, 4), random_tensor({kHeads, kWidth}, 5)};
  }
  std::vector<Var> run(Tape& tape, const std::vector<Var>& x) const {
    RelativeAttentionInput in = form;
    in.qkv = x[0], in.past = x[1], in.distances = x[2], in.content_bias = x[3], in.position_bias = x[4];
    return {relative_attention(tape, in, y)};
  }

  /// The published way: products with all distances, rows shifted by padding and reshaping, then the mask.
  std::vector<double> reference(const std::vector<Tensor>& x) const {
    std::vector<double> out(static_cast<std::size_t>(y.count()), 0);
    for (const RelativeUnit& unit : form.units)
      for (Index h = 0; h < kHeads; ++h) attend(unit, h, x, out);
    return out;
  }

 private:
  static double at(const Tensor& x, Index row, Index column) {
    return static_cast<double>(x.data()[row * x.extent(-1) + column]);
  }

  void attend(const RelativeUnit& unit, Index h, const std::vector<Tensor>& x, std::vector<double>& out) const {
    const Index cached = unit.past.end - unit.past.begin, rows = unit.own.end - unit.own.begin;
    const Index all = cached + form.segment;  // keys of a whole segment
    const auto key = [&](Index j, Index part, Index c) {
      const Index column = h * kWidth + c;
      return j < cached ? at(x[1], unit.past.begin + j, (part - 1) * kDim + column)
                        : at(x[0], unit.own.begin + j - cached, part * kDim + column);
    };
    const auto query = [&](Index i, Index bias, Index c) {
      return at(x[0], unit.own.begin + i, h * kWidth + c) + at(x[static_cast<std::size_t>(3 + bias)], h, c);
    };
    // [segment, 1 + all]: a column of zeros, then distances all-1 .. 0; read on from row 1 as [segment, all].
    std::vector<double> padded(static_cast<std::size_t>(form.segment * (all + 1)), 0);
    for (Index i = 0; i < rows; ++i)
      for (Index d = 0; d < all; ++d)
        for (Index c = 0; c < kWidth; ++c)
          padded[static_cast<std::size_t>(i * (all + 1) + all - d)] +=
              query(i, 1, c) * at(x[2], distances - 1 - std::min(d, distances - 1), h * kWidth + c);
    for (Index i = rows - unit.queries; i < rows; ++i) {
      std::vector<double> weights;
      double total = 0;
      for (Index j = 0; j < cached + rows; ++j) {
        double score = padded[static_cast<std::size_t>(form.segment + i * all + j)];
        for (Index c = 0; c < kWidth; ++c) score += query(i, 0, c) * key(j, 1, c);
        weights.push_back(sees(unit, cached, i, j) ? std::exp(score / std::sqrt(double{kWidth})) : 0);
        total += weights.back();
      }
      for (Index j = 0; j < cached + rows; ++j)
        for (Index c = 0; c < kWidth; ++c)
          out[static_cast<std::size_t>((unit.out + i - rows + unit.queries) * kDim + h * kWidth + c)] +=
              weights[static_cast<std::size_t>(j)] / total * key(j, 2, c);
    }
  }

  bool sees(const RelativeUnit& unit, Index cached, Index i, Index j) const {
    const Index distance = cached + i - j;
    if (form.window > 0 && distance >= form.window) return false;
    for (const Stretch& block : unit.blocks)
      if (block.begin <= i && i < block.end) return j < cached ? form.blocks_see_past : j < cached + block.end;
    return distance >= 0;
  }
};

/// Two lanes; the second one's first segment goes on from 70 open rows.
Problem problem(Index distances, Index window, bool blocks, bool blocks_see_past) {
  Problem p{.form = {}, .own = 110, .past = 16, .distances = distances, .y = {2, 60, kDim}};
  p.form.window = window, p.form.segment = 80, p.form.blocks_see_past = blocks_see_past;
  p.form.units = {{.lane = 0, .past = {0, 0}, .own = {0, 20}, .queries = 20, .out = 0},
                  {.lane = 0, .past = {0, 7}, .own = {20, 30}, .queries = 10, .out = 22},
                  {.lane = 1, .past = {9, 16}, .own = {30, 106}, .queries = 6, .out = 37},
                  {.lane = 1, .past = {7, 16}, .own = {106, 110}, .queries = 4, .out = 56}};
  if (blocks) {
    p.form.units[0].blocks = {{0, 5}, {17, 20}};
    p.form.units[2].blocks = {{71, 75}};
  }
  return p;
}

std::vector<Problem> problems() {
  return {problem(92, 0, false, false), problem(9, 0, false, false), problem(92, 6, false, false),
          problem(92, 0, true, false),  problem(92, 0, true, true),  problem(30, 11, true, true)};
}

}  // namespace

TEST_CASE("relative attention: the published shift, mask and softmax") {
  for (const Problem& p : problems()) {
    const std::vector<Tensor> x = p.inputs();
    Tape tape(false);
    const std::vector<Var> y = p.run(tape, {x.begin(), x.end()});
    CHECK(relative_error(y[0].value().span(), p.reference(x)) < (kIsDouble ? 1e-13 : 1e-5));
  }
}

TEST_CASE("relative attention: gradients agree with finite differences, whatever the threads") {
  for (const Problem& p : problems()) {
    const Operation run = [&](Tape& tape, const std::vector<Var>& x) { return p.run(tape, x); };
    check_gradients(run, p.inputs());
    check_threads(run, p.inputs());
  }
}

TEST_CASE("relative attention: more queries than a tile") {
  Problem p{.form = {}, .own = 150, .past = 20, .distances = 170, .y = {150, kDim}};
  p.form.segment = 150;
  p.form.units = {{.lane = 0, .past = {0, 20}, .own = {0, 150}, .queries = 150, .out = 0, .blocks = {{60, 68}}}};
  const std::vector<Tensor> x = p.inputs();
  Tape tape(false);
  CHECK(relative_error(p.run(tape, {x.begin(), x.end()})[0].value().span(), p.reference(x)) <
        (kIsDouble ? 1e-13 : 1e-5));
  check_gradients([&](Tape& t, const std::vector<Var>& v) { return p.run(t, v); }, x);
}

TEST_CASE("relative attention: shapes that disagree are refused") {
  const Problem p = problem(92, 0, false, false);
  std::vector<Tensor> x = p.inputs();
  x[1] = random_tensor({16, kDim}, 1);
  Tape tape(false);
  CHECK_THROWS_WITH_AS(p.run(tape, {x.begin(), x.end()}), doctest::Contains("past"), ShapeError);
}
