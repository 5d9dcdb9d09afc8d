#include "scan/diagonal_scan.h"

#include "grad/ops_linear.h"
#include "grad/ops_pointwise.h"
#include "op_checks.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kTolerance = 1e-12;
#else
constexpr double kTolerance = 1e-5;
#endif

/// A scan's inputs as plain tensors, and the obvious recurrence over them in double.
struct Problem {
  Layout layout;
  Tensor u, delta, a, b, c, skip, state;

  Problem(Layout where, Index channels, Index states, double step = 0.5) : layout(std::move(where)) {
    const Index batch = layout.batch, length = layout.length;
    u = random_tensor({batch, length, channels}, 1);
    delta = random_tensor({batch, length, channels}, 2, step);
    a = random_tensor({channels, states}, 3);
    for (Real& x : delta.span()) x = std::abs(x);
    for (Real& x : a.span()) x = -std::abs(x);
    b = random_tensor({batch, length, states}, 4);
    c = random_tensor({batch, length, states}, 5);
    skip = random_tensor({channels}, 6);
    state = random_tensor({batch, channels, states}, 7);
  }

  std::vector<Tensor> inputs() const { return {u, delta, a, b, c, skip, state}; }
  std::vector<Var> run(Tape& tape, const std::vector<Var>& in) const {
    const DiagonalScanOutput out = diagonal_scan(tape, {in[0], in[1], in[2], in[3], in[4], in[5], in[6]}, layout);
    return {out.y, out.state};
  }
  std::vector<Var> run(Tape& tape) const {
    const std::vector<Tensor> in = inputs();
    return run(tape, std::vector<Var>(in.begin(), in.end()));
  }
  Operation op() const {
    return [this](Tape& tape, const std::vector<Var>& in) { return run(tape, in); };
  }
};

struct Reference {
  std::vector<double> y, state;
};

Reference recur(const Problem& p) {
  const Index channels = p.u.extent(2), states = p.a.extent(1), length = p.layout.length;
  Reference r;
  r.y.assign(static_cast<std::size_t>(p.u.count()), 0);
  for (Index lane = 0; lane < p.layout.batch; ++lane)
    for (Index i = 0; i < channels; ++i) {
      const Real* const before = p.state.data() + (lane * channels + i) * states;
      std::vector<double> h(before, before + states);
      for (const Span& span : p.layout.spans(lane)) {
        if (span.fresh) std::fill(h.begin(), h.end(), 0.0);
        for (Index t = span.begin; t < span.end; ++t) {
          const Index row = lane * length + t;
          const double u = p.u.data()[row * channels + i], delta = p.delta.data()[row * channels + i];
          double y = static_cast<double>(p.skip.data()[i]) * u;
          for (Index n = 0; n < states; ++n) {
            double& cell = h[static_cast<std::size_t>(n)];
            cell = std::exp(delta * static_cast<double>(p.a.data()[i * states + n])) * cell +
                   delta * u * static_cast<double>(p.b.data()[row * states + n]);
            y += cell * static_cast<double>(p.c.data()[row * states + n]);
          }
          r.y[static_cast<std::size_t>(row * channels + i)] = y;
        }
      }
      r.state.insert(r.state.end(), h.begin(), h.end());
    }
  return r;
}

void check_forward(const Problem& p) {
  Tape tape(false);
  const std::vector<Var> out = p.run(tape);
  const Reference r = recur(p);
  CHECK(relative_error(out[0].value().span(), r.y) < kTolerance);
  CHECK(relative_error(out[1].value().span(), r.state) < kTolerance);
}

constexpr Index kChunk = kDiagonalChunk;
const Layout kDocuments{3, kChunk + 11, {kChunk + 11, kChunk - 4, 0}, {{0, 30, 31, kChunk + 6}, {kChunk - 5}, {}}};

/// [B,D,T] -> [B,T,D], as the published code keeps its operands.
Tensor transposed(const Tensor& x) {
  const Index batch = x.extent(0), rows = x.extent(1), cols = x.extent(2);
  Tensor y({batch, cols, rows});
  for (Index i = 0; i < batch; ++i)
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < cols; ++c) y.data()[(i * cols + c) * rows + r] = x.data()[(i * rows + r) * cols + c];
  return y;
}

}  // namespace

TEST_CASE("diagonal scan: the obvious recurrence") {
  for (const Layout& layout : {Layout::plain(2, 1), Layout::plain(1, kChunk), Layout::plain(2, 2 * kChunk + 5),
                               Layout::fresh(2, kChunk + 1), kDocuments})
    for (const Index channels : {3, 16, 48, 70, 128, 150})
      for (const Index states : {1, 5, 16}) {
        CAPTURE(layout.length);
        CAPTURE(channels);
        CAPTURE(states);
        check_forward(Problem(layout, channels, states));
      }
}

TEST_CASE("diagonal scan: decays from none to all") {
  for (const double step : {0.0, 1e-7, 1e-3, 30.0, 1e4, 1e9}) {
    CAPTURE(step);
    const Problem p(Layout::plain(1, kChunk + 20), 20, 4, step);
    check_forward(p);
    for (const Tensor& x : outputs_then_gradients(p.op(), p.inputs()))
      for (const Real value : x.span()) REQUIRE(std::isfinite(value));
  }
}

TEST_CASE("diagonal scan: gradients, through the outgoing state too") {
  for (const Layout& layout : {Layout::plain(2, 3), Layout::plain(1, 2 * kChunk + 5), kDocuments})
    for (const Index channels : {5, 16, 70})
      for (const Index states : {1, 4, 16}) {
        CAPTURE(layout.length);
        CAPTURE(channels);
        CAPTURE(states);
        const Problem p(layout, channels, states);
        check_gradients(p.op(), p.inputs());
      }
}

TEST_CASE("diagonal scan: the same for any number of threads") {
  const Problem p(kDocuments, 200, 5);
  check_threads(p.op(), p.inputs());
}

TEST_CASE("diagonal scan: a stream of 100,000 tokens") { check_forward(Problem(Layout::plain(1, 100000), 5, 2, 0.01)); }

TEST_CASE("diagonal scan: gradients of a long stream") {
  const Problem p(Layout::plain(1, 20 * kChunk + 3), 17, 3, 0.01);
  check_forward(p);
  check_gradients(p.op(), p.inputs());
}

TEST_CASE("diagonal scan: without skip and state") {
  const Problem p(Layout::plain(2, 9), 5, 4);
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& in) {
        const DiagonalScanOutput out =
            diagonal_scan(tape, {.u = in[0], .delta = in[1], .a = in[2], .b = in[3], .c = in[4]}, p.layout);
        return std::vector<Var>{out.y, out.state};
      },
      {p.u, p.delta, p.a, p.b, p.c});
}

TEST_CASE("diagonal scan: the step gives what the parallel form gives, in place") {
  for (const Index states : {1, 5, 16, 37}) {
    const Problem p(Layout::plain(2, 11), 7, states);
    const Reference r = recur(p);
    Tensor state = p.state.clone(), y({2, 11, 7});
    const auto rows = [](const Tensor& x, Index t) {
      const Index size = x.extent(2);
      return Matrix{x.data() + t * size, 2, size, 11 * size};
    };
    std::copy_n(p.u.data(), p.u.count(), y.data());
    for (Index t = 0; t < 11; ++t)
      diagonal_scan_step(rows(y, t), rows(y, t), rows(p.delta, t), p.a.data(), rows(p.b, t), rows(p.c, t),
                         p.skip.data(), state);
    CHECK(relative_error(y.span(), r.y) < kTolerance);
    CHECK(relative_error(state.span(), r.state) < kTolerance);
  }
}

TEST_CASE("diagonal scan: what does not fit is said") {
  const Problem p(Layout::plain(2, 9), 5, 4);
  Tape tape(false);
  CHECK_THROWS_AS(diagonal_scan(tape, {.u = p.u, .delta = p.delta, .a = p.a, .b = p.b, .c = p.b}, Layout::plain(2, 8)),
                  ShapeError);
  CHECK_THROWS_AS(
      diagonal_scan(tape, {.u = p.u, .delta = p.delta, .a = random_tensor({4, 4}, 1), .b = p.b, .c = p.c}, p.layout),
      ShapeError);
  CHECK_THROWS_AS(
      diagonal_scan(tape, {.u = p.u, .delta = p.delta, .a = p.a, .b = p.b, .c = p.c, .state = p.c}, p.layout),
      ShapeError);
}

TEST_CASE("golden: the published selective scan") {
  const GoldenCase golden = GoldenFile("mamba").at("selective_scan_op");
  const auto leaf = [&](const std::string& name, bool turn) {
    const Tensor x = tensor_of(golden.tensor(name));
    return Var::leaf(turn ? transposed(x) : x);
  };
  for (const bool with_state : {false, true}) {
    const Var u = leaf("input/u", true), delta = leaf("input/delta", true), z = leaf("input/z", true);
    const Var b = leaf("input/B", true), c = leaf("input/C", true), a = leaf("param/A", false);
    const Var skip = leaf("param/D", false), bias = leaf("param/delta_bias", false);
    Tape tape(true);
    const Index channels = u.extent(2);
    Tensor identity = Tensor::zeros({channels, channels});
    for (Index i = 0; i < channels; ++i) identity.data()[i * channels + i] = 1;
    const Var step = activate(tape, linear(tape, delta, identity, bias), Activation::softplus);
    const Layout layout = Layout::plain(u.extent(0), u.extent(1));
    const DiagonalScanOutput out =
        diagonal_scan(tape, {.u = u, .delta = step, .a = a, .b = b, .c = c, .skip = skip}, layout);
    const Var y = gated(tape, z, out.y, Activation::silu);
    CHECK(relative_error(transposed(y.value()), golden.tensor("output")) < kOutputTolerance);
    CHECK(relative_error(out.state.value(), golden.tensor("final_state/ssm")) < kOutputTolerance);
    std::vector<std::pair<Var, Tensor>> seeds{{y, transposed(tensor_of(golden.tensor("cotangent")))}};
    if (with_state) seeds.emplace_back(out.state, tensor_of(golden.tensor("cotangent_state/ssm")));
    tape.backward(seeds);
    const std::string group = with_state ? "grad_with_state/" : "grad/";
    for (const auto& [name, var] :
         {std::pair{"input/u", &u}, {"input/delta", &delta}, {"input/z", &z}, {"input/B", &b}, {"input/C", &c}}) {
      CAPTURE(name);
      CHECK(relative_error(transposed(var->gradient()->sum()), golden.tensor(group + name)) < kGradientTolerance);
    }
    for (const auto& [name, var] : {std::pair{"param/A", &a}, {"param/D", &skip}, {"param/delta_bias", &bias}}) {
      CAPTURE(name);
      CHECK(relative_error(var->gradient()->sum(), golden.tensor(group + name)) < kGradientTolerance);
    }
  }
}
