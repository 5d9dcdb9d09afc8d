#include "scan/position_attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "op_checks.h"

using namespace quipu;

namespace {

constexpr Index kHeads = 2, kLength = 150, kWidth = 3, kValue = 5;

/// The obvious sum over earlier tokens; logits(b, t, h, p, s).
template <typename Logits>
std::vector<double> attend(const Tensor& v, const std::vector<Index>& past, const Layout& layout,
                           const Logits& logits) {
  const Index before_rows = v.extent(1) - layout.length;
  std::vector<double> y(static_cast<std::size_t>(layout.batch * layout.length * kHeads * kValue), 0);
  for (Index b = 0; b < layout.batch; ++b)
    for (const Span& span : layout.spans(b)) {
      const Index before = span.fresh || past.empty() ? 0 : past[static_cast<std::size_t>(b)];
      for (Index t = span.begin; t < span.end; ++t)
        for (Index h = 0; h < kHeads; ++h) {
          const Index p = before + t - span.begin;
          std::vector<double> sum(kValue, 0);
          double total = 0;
          for (Index s = 0; s <= p; ++s) {
            const double weight = std::exp(logits(b, t, h, p, s));
            const Index row = b * v.extent(1) + before_rows + t - p + s;
            total += weight;
            for (Index c = 0; c < kValue; ++c)
              sum[static_cast<std::size_t>(c)] +=
                  weight * static_cast<double>(v.data()[(row * kHeads + h) * kValue + c]);
          }
          for (Index c = 0; c < kValue; ++c)
            y[static_cast<std::size_t>(((b * layout.length + t) * kHeads + h) * kValue + c)] =
                sum[static_cast<std::size_t>(c)] / total;
        }
    }
  return y;
}

double product(const Real* a, const Real* b) {
  double sum = 0;
  for (Index i = 0; i < kWidth; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

struct Problem {
  Layout layout;
  std::vector<Index> past;
  Tensor table = random_tensor({kHeads, kLength, kLength}, 1), rows = random_tensor({kHeads, kLength, kWidth}, 2);
  Tensor keys = random_tensor({kHeads, kLength, kWidth}, 3), bias = random_tensor({kHeads, kLength}, 4), tokens, v;

  Problem(Layout where, std::vector<Index> before) : layout(std::move(where)), past(std::move(before)) {
    const Index room = past.empty() ? 0 : *std::max_element(past.begin(), past.end());
    tokens = random_tensor({layout.batch, layout.length, kHeads, kWidth}, 5);
    v = random_tensor({layout.batch, room + layout.length, kHeads, kValue}, 6);
  }

  /// By table, by the query of the token with a bias, by the query of the position.
  std::vector<Var> outputs(Tape& tape, const std::vector<Var>& x) const {
    return {position_attention(tape, {.table = x[0], .v = x[5], .past = past}, layout),
            position_attention(tape, {.q = x[4], .keys = x[2], .bias = x[3], .v = x[5], .past = past}, layout),
            position_attention(tape, {.q = x[1], .keys = x[2], .v = x[5], .past = past}, layout)};
  }
  std::vector<Tensor> inputs() const { return {table, rows, keys, bias, tokens, v}; }

  void check() const {
    Tape tape(false);
    const Operation operation = [&](Tape& t, const std::vector<Var>& x) { return outputs(t, x); };
    const std::vector<Tensor> all = inputs();
    const std::vector<Var> y = outputs(tape, {all.begin(), all.end()});
    const auto key = [&](Index h, Index s) { return keys.data() + (h * kLength + s) * kWidth; };
    constexpr double kTolerance = kIsDouble ? 1e-13 : 1e-5;
    CHECK(relative_error(y[0].value().span(), attend(v, past, layout, [&](Index, Index, Index h, Index p, Index s) {
                           return static_cast<double>(table.data()[(h * kLength + p) * kLength + s]);
                         })) < kTolerance);
    CHECK(relative_error(y[1].value().span(), attend(v, past, layout, [&](Index b, Index t, Index h, Index, Index s) {
                           const Real* const q = tokens.data() + ((b * layout.length + t) * kHeads + h) * kWidth;
                           return product(q, key(h, s)) + static_cast<double>(bias.data()[h * kLength + s]);
                         })) < kTolerance);
    CHECK(relative_error(y[2].value().span(), attend(v, past, layout, [&](Index, Index, Index h, Index p, Index s) {
                           return product(rows.data() + (h * kLength + p) * kWidth, key(h, s));
                         })) < kTolerance);
    check_gradients(operation, all);
    check_threads(operation, all);
  }
};

}  // namespace

TEST_CASE("attention by position equals the sum over earlier tokens, in all its forms") {
  for (const Index length : {1, 7, 63, 64, 65, 133}) {
    CAPTURE(length);
    Problem(Layout::plain(2, length), {}).check();
  }
}

TEST_CASE("attention by position goes on from what a lane has read, and starts anew at documents") {
  Problem(Layout::plain(2, 70), {11, 0}).check();
  Problem(Layout{3, 80, {80, 61, 0}, {{0, 1, 40}, {30}, {}}}, {5, 9, 2}).check();
}

TEST_CASE("attention by position never reads padding") {
  Problem p(Layout{1, 80, {61}, {}}, {});
  std::fill(p.v.data() + 61 * kHeads * kValue, p.v.data() + p.v.count(), static_cast<Real>(NAN));
  Tape tape(false);
  const Tensor y = position_attention(tape, {.table = p.table, .v = p.v}, p.layout).value();
  for (const Real value : y.span()) CHECK(std::isfinite(value));
}

TEST_CASE("attention by position: shapes that disagree") {
  const Problem p(Layout::plain(2, 7), {});
  Tape tape(false);
  CHECK_THROWS_AS(position_attention(tape, {.table = p.keys, .v = p.v}, p.layout), ShapeError);
  CHECK_THROWS_AS(position_attention(tape, {.q = p.keys, .keys = p.bias, .v = p.v}, p.layout), ShapeError);
}
