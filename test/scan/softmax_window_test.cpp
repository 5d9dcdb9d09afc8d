#include "scan/softmax_window.h"

#include <doctest/doctest.h>

#include "grad/ops_position.h"
#include "mixers/instance.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kSame = 1e-12;
#else
constexpr double kSame = 5e-6;
#endif

/// The definition, in double: every query against every key that it may see.
std::vector<double> obvious(const SoftmaxWindowInput& in, const Layout& layout) {
  const Tensor &q = in.q.value(), &k = in.k.value(), &v = in.v.value();
  const Index length = layout.length, past = k.extent(1) - length, heads = q.extent(2), kv = k.extent(2);
  const Index width = q.extent(3), values = v.extent(3), group = heads / kv;
  std::vector<double> y(static_cast<std::size_t>(layout.batch * length * heads * values), 0);
  for (Index b = 0; b < layout.batch; ++b)
    for (const Span& span : layout.spans(b))
      for (Index t = span.begin; t < span.end; ++t)
        for (Index h = 0; h < heads; ++h) {
          const Index before =
              span.fresh || span.begin > 0 || in.past.empty() ? 0 : in.past[static_cast<std::size_t>(b)];
          const Index first = past + span.begin - before;
          std::vector<double> out(static_cast<std::size_t>(values), 0);
          double total = 0;
          for (Index s = first; s <= past + t; ++s) {
            if (in.window > 0 && past + t - s >= in.window) continue;
            double score = 0;
            for (Index c = 0; c < width; ++c)
              score += static_cast<double>(q.data()[((b * length + t) * heads + h) * width + c]) *
                       static_cast<double>(k.data()[((b * k.extent(1) + s) * kv + h / group) * width + c]);
            const double weight = std::exp(static_cast<double>(in.scale) * score);
            total += weight;
            for (Index c = 0; c < values; ++c)
              out[static_cast<std::size_t>(c)] +=
                  weight * static_cast<double>(v.data()[((b * v.extent(1) + s) * kv + h / group) * values + c]);
          }
          for (Index c = 0; c < values; ++c)
            y[static_cast<std::size_t>(((b * length + t) * heads + h) * values + c)] =
                out[static_cast<std::size_t>(c)] / total;
        }
  return y;
}

SoftmaxWindowInput problem(const Layout& layout, Index past, Index window) {
  SoftmaxWindowInput in;
  in.q = random_tensor({layout.batch, layout.length, 4, 3}, 1);
  in.k = random_tensor({layout.batch, past + layout.length, 2, 3}, 2);
  in.v = random_tensor({layout.batch, past + layout.length, 2, 5}, 3);
  in.scale = Real{0.75};
  in.window = window;
  return in;
}

}  // namespace

TEST_CASE("softmax attention equals its definition, across tiles, windows, documents and pasts") {
  const Index length = 700;  // several tiles of queries and of keys
  const Layout documents{2, length, {length, 650}, {{130, 131, 500}, {0, 300}}};
  for (const Index window : {Index{0}, Index{1}, Index{5}, Index{200}}) {
    CAPTURE(window);
    for (const Layout& layout : {Layout::plain(2, 1), Layout::plain(2, length), documents}) {
      Tape tape(false);
      const SoftmaxWindowInput in = problem(layout, 0, window);
      CHECK(relative_error(softmax_window(tape, in, layout).value().span(), obvious(in, layout)) < kSame);
    }
    Tape tape(false);
    SoftmaxWindowInput in = problem(documents, 9, window);
    in.past = {9, 4};
    CHECK(relative_error(softmax_window(tape, in, documents).value().span(), obvious(in, documents)) < kSame);
  }
}

TEST_CASE("softmax attention keeps large scores finite") {
  const Layout layout = Layout::plain(1, 600);
  SoftmaxWindowInput in = problem(layout, 0, 0);
  in.scale = 1000;
  Tape tape(false);
  for (const Real y : softmax_window(tape, in, layout).value().span()) REQUIRE(std::isfinite(y));
}

TEST_CASE("softmax attention: golden operations with grouped heads and a window") {
  for (const char* name : {"fla_op_gqa", "fla_op_window5"}) {
    INFO(name);
    const GoldenCase golden = GoldenFile("transformer_pp").at(name);
    const auto leaf = [&](const char* path) { return Var::leaf(tensor_of(golden.tensor(path))); };
    const Var q = leaf("input/q"), k = leaf("input/k"), v = leaf("input/v");
    const Layout layout = Layout::plain(q.extent(0), q.extent(1));
    std::vector<std::int64_t> positions;
    for (Index b = 0; b < layout.batch; ++b)
      for (Index t = 0; t < layout.length; ++t) positions.push_back(t);
    Tape tape(true);
    SoftmaxWindowInput in;
    in.q = rope(tape, q, positions, 10000, RopeLayout::half);
    in.k = rope(tape, k, positions, 10000, RopeLayout::half);
    in.v = v;
    in.scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(q.extent(3))));
    in.window = static_cast<Index>(golden.number_or("window_size", 0));
    const Var y = softmax_window(tape, in, layout);
    CHECK(relative_error(y.value(), golden.tensor("output")) < kOutputTolerance);
    tape.backward(y, tensor_of(golden.tensor("cotangent")));
    CHECK(relative_error(q.gradient()->sum(), golden.tensor("grad/input/q")) < kGradientTolerance);
    CHECK(relative_error(k.gradient()->sum(), golden.tensor("grad/input/k")) < kGradientTolerance);
    CHECK(relative_error(v.gradient()->sum(), golden.tensor("grad/input/v")) < kGradientTolerance);
  }
}
