#include "scan/aft_window.h"

#include "grad/ops_pointwise.h"
#include "op_checks.h"
#include "scan/golden_op.h"

using namespace quipu;

namespace {

constexpr double kSame = kIsDouble ? 1e-12 : 1e-5;

/// k, v, w.
struct Problem {
  Layout layout;
  std::vector<Index> past;
  Index window, dim;
  std::vector<Tensor> in;

  Problem(const Layout& where, std::vector<Index> before, Index reach, double keys = 1, double biases = 1,
          Index positions = 210, Index width = 19)
      : layout(where), past(std::move(before)), window(reach), dim(width) {
    const Index rows = layout.length + (past.empty() ? 0 : *std::max_element(past.begin(), past.end()));
    in = {random_tensor({layout.batch, rows, dim}, 1, keys), random_tensor({layout.batch, rows, dim}, 2),
          random_tensor({positions, positions}, 3, biases)};
  }
};

Operation mean(const Problem& q) {
  return [layout = q.layout, past = q.past, window = q.window](Tape& tape, const std::vector<Var>& in) {
    return std::vector<Var>{
        aft_window(tape, {.k = in[0], .v = in[1], .past = past, .bias = in[2], .window = window}, layout)};
  };
}

/// Term by term.
std::vector<double> reference(const Problem& q) {
  const auto number = [](const Tensor& x, Index i) { return static_cast<long double>(x.data()[i]); };
  const Index rows = q.in[0].extent(1), before = rows - q.layout.length, positions = q.in[2].extent(0);
  std::vector<double> y(static_cast<std::size_t>(q.layout.batch * q.layout.length * q.dim), 0);
  for (Index b = 0; b < q.layout.batch; ++b)
    for (const Span& span : q.layout.spans(b)) {
      const Index old = span.fresh || q.past.empty() ? 0 : q.past[static_cast<std::size_t>(b)];
      for (Index at = span.begin; at < span.end; ++at)
        for (Index c = 0; c < q.dim; ++c) {
          const Index t = old + at - span.begin;
          std::vector<long double> logs;
          const auto key = [&](Index s) { return (b * rows + before + span.begin - old + s) * q.dim + c; };
          for (Index s = 0; s <= t; ++s)
            logs.push_back(number(q.in[0], key(s)) +
                           (q.window > 0 && t - s >= q.window ? 0 : number(q.in[2], t * positions + s)));
          const long double top = *std::max_element(logs.begin(), logs.end());
          long double num = 0, den = 0;
          for (Index s = 0; s <= t; ++s) {
            const long double e = std::exp(logs[static_cast<std::size_t>(s)] - top);
            num += e * number(q.in[1], key(s)), den += e;
          }
          y[static_cast<std::size_t>((b * q.layout.length + at) * q.dim + c)] = static_cast<double>(num / den);
        }
    }
  return y;
}

void check_forward(const Problem& q, double tolerance = kSame) {
  Tape tape(false);
  CHECK(relative_error(mean(q)(tape, {q.in.begin(), q.in.end()})[0].value().span(), reference(q)) < tolerance);
}

const Layout kDocuments{3, 2 * kAftTile + 5, {2 * kAftTile + 5, 40, 0}, {{30, 31}, {20}, {}}};

}  // namespace

TEST_CASE("AFT's mean equals the definition, at lengths around its tile") {
  for (const Index window : {0, 1, 7, 100})
    for (const Index length : {Index{1}, Index{7}, kAftTile, kAftTile + 1, 2 * kAftTile + 5}) {
      CAPTURE(window);
      CAPTURE(length);
      check_forward(Problem(Layout::plain(2, length), {}, window));
      check_forward(Problem(Layout::plain(2, length), {70, 3}, window));
    }
  check_forward(Problem(Layout::plain(1, 150), {}, 0, 1, 1, 150, 300));
}

TEST_CASE("AFT's mean starts anew at documents and never reads padding") {
  Problem q(kDocuments, {5, 60, 0}, 0);
  const Index rows = q.in[0].extent(1), first = rows - q.layout.length;
  for (Index t = 40; t < q.layout.length; ++t)
    for (const std::size_t i : {0u, 1u}) q.in[i].data()[(rows + first + t) * q.dim + 3] = NAN;
  check_forward(q);
  for (const Tensor& x : outputs_then_gradients(mean(q), q.in))
    for (const Real value : x.span()) REQUIRE(std::isfinite(value));
}

TEST_CASE("AFT's mean stays exact under large keys and biases") {
  for (const double keys : {0.0, 30.0, 1000.0})
    for (const double biases : {0.0, 8.0, 20.0, 1000.0}) {
      CAPTURE(keys);
      CAPTURE(biases);
      // a key of 1000 plus a bias is rounded to the last digit of 1000, and that is a weight's relative error
      check_forward(Problem(Layout::plain(1, 150), {}, 0, keys, biases), kSame * std::max({1.0, keys, biases}));
    }
}

TEST_CASE("AFT's mean: gradients agree with finite differences") {
  for (const double biases : {1.0, 20.0})
    for (const Index window : {0, 9}) {
      CAPTURE(biases);
      CAPTURE(window);
      const Problem plain(Layout::plain(2, 80), {}, window, 2, biases),
          documents(kDocuments, {5, 60, 0}, window, 2, biases);
      check_gradients(mean(plain), plain.in);
      check_gradients(mean(documents), documents.in);
    }
}

TEST_CASE("AFT's mean does not depend on the number of threads") {
  const Problem q(kDocuments, {5, 60, 0}, 9);
  check_threads(mean(q), q.in);
}

TEST_CASE("AFT's step equals the mean") {
  const Index length = 100;
  const Problem q(Layout::plain(1, length), {}, 0);
  const std::vector<double> wanted = reference(q);
  Tensor y({length, q.dim}), room({3, q.dim});
  for (Index t = 0; t < length; ++t)
    aft_window_step(q.in[0].matrix().slice(0, t + 1), q.in[1].matrix().slice(0, t + 1),
                    q.in[2].data() + t * q.in[2].extent(0), y.data() + t * q.dim, room.data());
  CHECK(relative_error(y.span(), wanted) < kSame);
}

TEST_CASE("AFT's mean names what does not fit") {
  Tape tape(false);
  const Problem q(Layout::plain(1, 30), {}, 0, 1, 1, 20);
  CHECK_THROWS_WITH_AS(mean(q)(tape, {q.in.begin(), q.in.end()}), doctest::Contains("30 tokens"), InputError);
  CHECK_THROWS_AS(aft_window(tape, {.k = q.in[0], .v = q.in[2], .bias = q.in[2]}, q.layout), ShapeError);
}

TEST_CASE("golden: AFT with position biases as an operation") {
  for (const auto& [name, window] : {std::pair{"aft_full_causal_T17", 0}, {"aft_local_causal_T17_w4", 4}})
    OpCase("aft", name).check([reach = window](Tape& tape, OpCase& c) -> Outputs {
      AftWindowInput in{.window = reach};
      in.k = c.leaf("input/k"), in.v = c.leaf("input/v"), in.bias = c.leaf("param/w");
      const Var y = aft_window(tape, in, Layout::plain(in.k.extent(0), in.k.extent(1)));
      return {gated(tape, c.leaf("input/q"), y, Activation::sigmoid), {}};
    });
}
