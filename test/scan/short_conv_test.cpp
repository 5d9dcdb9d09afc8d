#include "scan/short_conv.h"

#include "op_checks.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kTolerance = 1e-13;
#else
constexpr double kTolerance = 1e-5;
#endif

struct Problem {
  Layout layout;
  Activation activation = Activation::silu;
  std::vector<Index> parts;
  Tensor x, weight, bias, state;

  Problem(Layout where, Index channels, Index width) : layout(std::move(where)) {
    x = random_tensor({layout.batch, layout.length, channels}, 1);
    weight = random_tensor({channels, 1, width}, 2);
    bias = random_tensor({channels}, 3);
    state = random_tensor({layout.batch, width - 1, channels}, 4);
  }

  std::vector<Var> run(Tape& tape, const std::vector<Var>& in) const {
    ShortConvOutput out = short_conv(tape, {in[0], in[1], in[2], in[3], activation, parts}, layout);
    std::vector<Var> all = out.parts;
    all.push_back(out.state);
    return all;
  }
  std::vector<Tensor> inputs() const { return {x, weight, bias, state}; }
};

/// Token by token, in double: y and the last inputs.
struct Reference {
  std::vector<double> y, state;
};

Reference convolve(const Problem& p) {
  const Index channels = p.x.extent(2), width = p.weight.extent(2), length = p.layout.length;
  Reference r;
  r.y.assign(static_cast<std::size_t>(p.x.count()), 0);
  for (Index b = 0; b < p.layout.batch; ++b) {
    std::vector<std::vector<double>> past;  // the last inputs, oldest first
    for (Index i = 0; i < width - 1; ++i) {
      const Real* const row = p.state.data() + (b * (width - 1) + i) * channels;
      past.emplace_back(row, row + channels);
    }
    for (const Span& span : p.layout.spans(b)) {
      if (span.fresh) past.assign(past.size(), std::vector<double>(static_cast<std::size_t>(channels), 0));
      for (Index t = span.begin; t < span.end; ++t) {
        const Real* const row = p.x.data() + (b * length + t) * channels;
        past.emplace_back(row, row + channels);
        for (Index c = 0; c < channels; ++c) {
          double sum = p.bias.data()[c];
          for (Index j = 0; j < width; ++j)
            sum += static_cast<double>(p.weight.data()[c * width + j]) *
                   past[static_cast<std::size_t>(j)][static_cast<std::size_t>(c)];
          r.y[static_cast<std::size_t>((b * length + t) * channels + c)] =
              p.activation == Activation::silu ? sum / (1 + std::exp(-sum)) : sum;
        }
        past.erase(past.begin());
      }
    }
    for (const auto& row : past) r.state.insert(r.state.end(), row.begin(), row.end());
  }
  return r;
}

const Layout kDocuments{3, 75, {75, 60, 0}, {{0, 30, 31, 70}, {59}, {}}};

}  // namespace

TEST_CASE("short convolution: the obvious recurrence") {
  for (const Index width : {2, 3, 4, 5, 9, 70})
    for (const Activation activation : {Activation::silu, Activation::identity})
      for (const Layout& layout : {Layout::plain(2, 1), Layout::plain(2, 3), Layout::plain(1, 150), kDocuments}) {
        CAPTURE(width);
        CAPTURE(layout.length);
        Problem p(layout, 7, width);
        p.activation = activation;
        Tape tape(false);
        const std::vector<Var> out = p.run(tape, {p.x, p.weight, p.bias, p.state});
        const Reference r = convolve(p);
        CHECK(relative_error(out[0].value().span(), r.y) < kTolerance);
        CHECK(relative_error(out[1].value().span(), r.state) < kTolerance);
      }
}

TEST_CASE("short convolution: gradients, through the outgoing state too") {
  for (const Index width : {2, 4, 6})
    for (const Activation activation : {Activation::silu, Activation::identity, Activation::tanh})
      for (const Layout& layout : {Layout::plain(2, 2), Layout::plain(1, 70), kDocuments}) {
        CAPTURE(width);
        CAPTURE(layout.length);
        Problem p(layout, 5, width);
        p.activation = activation;
        check_gradients([&](Tape& tape, const std::vector<Var>& in) { return p.run(tape, in); }, p.inputs());
      }
}

TEST_CASE("short convolution: channels in several outputs") {
  Problem p(kDocuments, 600, 4);
  const auto op = [&](Tape& tape, const std::vector<Var>& in) { return p.run(tape, in); };
  Tape tape(false);
  const std::vector<Tensor> in = p.inputs();
  const std::vector<Var> whole = p.run(tape, {in[0], in[1], in[2], in[3]});
  p.parts = {270, 1, 329};
  const std::vector<Var> parts = p.run(tape, {in[0], in[1], in[2], in[3]});
  REQUIRE(parts.size() == 4);
  Index first = 0;
  for (std::size_t i = 0; i < 3; first += p.parts[i++])
    for (Index row = 0; row < 3 * 75; ++row)
      REQUIRE(std::equal(parts[i].value().data() + row * p.parts[i], parts[i].value().data() + (row + 1) * p.parts[i],
                         whole[0].value().data() + row * 600 + first));
  check_gradients(op, in);
  check_threads(op, in);
}

TEST_CASE("short convolution: without bias and state, and a gradient of the state alone") {
  const Problem p(Layout::plain(2, 9), 5, 4);
  const Operation op = [&](Tape& tape, const std::vector<Var>& in) {
    const ShortConvOutput out = short_conv(tape, {.x = in[0], .weight = in[1]}, p.layout);
    return std::vector<Var>{out.y(), out.state};
  };
  check_gradients(op, {p.x, p.weight.reshaped({5, 4})});
  check_gradients([&](Tape& tape, const std::vector<Var>& in) { return std::vector<Var>{op(tape, in)[1]}; },
                  {p.x, p.weight});
}

TEST_CASE("short convolution: the step gives what the parallel form gives, in place") {
  for (const Index width : {2, 4, 7}) {
    const Problem p(Layout::plain(2, 11), 5, width);
    const Reference r = convolve(p);
    Tensor state = p.state.clone(), y({2, 11, 5}), row({2, 5});
    for (Index t = 0; t < 11; ++t) {
      for (Index b = 0; b < 2; ++b) std::copy_n(p.x.data() + (b * 11 + t) * 5, 5, row.data() + b * 5);
      short_conv_step(row.matrix(), row.matrix(), p.weight, p.bias, p.activation, state);
      for (Index b = 0; b < 2; ++b) std::copy_n(row.data() + b * 5, 5, y.data() + (b * 11 + t) * 5);
    }
    CHECK(relative_error(y.span(), r.y) < kTolerance);
    CHECK(relative_error(state.span(), r.state) < kTolerance);
  }
}

TEST_CASE("short convolution: what does not fit is said") {
  const Problem p(Layout::plain(2, 9), 5, 4);
  Tape tape(false);
  const auto run = [&](ShortConvInput in) { short_conv(tape, in, p.layout); };
  CHECK_THROWS_WITH_AS(run({.x = p.x, .weight = random_tensor({5, 1}, 1)}),
                       "short convolution: width 1; it must be at least 2", ShapeError);
  CHECK_THROWS_AS(run({.x = p.x, .weight = random_tensor({6, 4}, 1)}), ShapeError);
  CHECK_THROWS_AS(run({.x = p.x, .weight = p.weight, .state = random_tensor({2, 4, 5}, 1)}), ShapeError);
  CHECK_THROWS_AS(run({.x = p.x, .weight = p.weight, .parts = {2, 2}}), ShapeError);
}
