#include "scan/wkv4_scan.h"

#include "grad/ops_pointwise.h"
#include "op_checks.h"
#include "tensor/wkv_rows.h"

using namespace quipu;

namespace {

constexpr Index kDim = 70;
constexpr double kSame = kIsDouble ? 1e-12 : 1e-5;

/// k, v, w, u, a, b, p.
struct Problem {
  Layout layout;
  std::vector<Tensor> in;

  Problem(const Layout& where, double decay, double key_scale = 1) : layout(where) {
    const Shape sequence{layout.batch, layout.length, kDim}, state{layout.batch, kDim};
    in = {random_tensor(sequence, 1, key_scale),
          random_tensor(sequence, 2),
          random_tensor({kDim}, 3),
          random_tensor({kDim}, 4),
          random_tensor(state, 5),
          random_tensor(state, 6),
          random_tensor(state, 7)};
    for (Real& w : in[2].span()) w = -static_cast<Real>(decay) * (std::abs(w) + Real(0.1));
    for (Real& b : in[5].span()) b = 1 + std::abs(b);
  }
};

std::vector<Var> run(Tape& tape, const std::vector<Var>& in, const Layout& layout) {
  const Wkv4Output out = wkv4_scan(
      tape, {.k = in[0], .v = in[1], .log_decay = in[2], .bonus = in[3], .a = in[4], .b = in[5], .p = in[6]}, layout);
  return {out.y, out.a, out.b, out.p};
}

Operation scan(const Layout& layout) {
  return [layout](Tape& tape, const std::vector<Var>& in) { return run(tape, in, layout); };
}

double at(const Tensor& x, Index i) { return x.defined() ? static_cast<double>(x.data()[i]) : 0; }

/// The recurrence token by token, in long double: y, then the logarithm of the true denominator, then the weighted
/// mean of the state, which do not depend on the choice of p.
std::vector<std::vector<double>> reference(const Problem& q) {
  std::vector<std::vector<double>> out(3);
  out[0].assign(static_cast<std::size_t>(q.layout.batch * q.layout.length * kDim), 0);
  for (Index b = 0; b < q.layout.batch; ++b)
    for (Index c = 0; c < kDim; ++c) {
      const Index i = b * kDim + c;
      long double num = at(q.in[4], i), den = at(q.in[5], i), p = at(q.in[6], i);
      const long double w = at(q.in[2], c), u = at(q.in[3], c);
      for (const Span& span : q.layout.spans(b)) {
        if (span.fresh) num = den = 0, p = -1e38L;
        for (Index t = span.begin; t < span.end; ++t) {
          const Index token = (b * q.layout.length + t) * kDim + c;
          const long double k = at(q.in[0], token), v = at(q.in[1], token);
          const long double top = std::max(p, u + k), old = std::exp(p - top), now = std::exp(u + k - top);
          out[0][static_cast<std::size_t>(token)] = static_cast<double>((old * num + now * v) / (old * den + now));
          const long double next = std::max(p + w, k), kept = std::exp(p + w - next), fresh = std::exp(k - next);
          num = kept * num + fresh * v, den = kept * den + fresh, p = next;
        }
      }
      out[1].push_back(static_cast<double>(p + std::log(den)));
      out[2].push_back(static_cast<double>(num / den));
    }
  return out;
}

void check_forward(const Problem& q, double tolerance = kSame) {
  Tape tape(false);
  const std::vector<Var> out = run(tape, {q.in.begin(), q.in.end()}, q.layout);
  const auto wanted = reference(q);
  CHECK(relative_error(out[0].value().span(), wanted[0]) < tolerance);
  std::vector<double> log_sums, means;
  for (Index i = 0; i < q.layout.batch * kDim; ++i) {
    log_sums.push_back(at(out[3].value(), i) + std::log(at(out[2].value(), i)));
    means.push_back(at(out[1].value(), i) / at(out[2].value(), i));
  }
  CHECK(relative_error(log_sums, wanted[1]) < tolerance);
  CHECK(relative_error(means, wanted[2]) < tolerance);
}

const Layout kDocuments{3, 2 * kWkv4Chunk + 5, {2 * kWkv4Chunk + 5, 40, 0}, {{0, 1, 20, 64}, {kWkv4Chunk}, {}}};

}  // namespace

TEST_CASE("wkv scan equals the recurrence, at lengths around its chunk") {
  for (const Index length : {Index{1}, Index{7}, kWkv4Chunk - 1, kWkv4Chunk, kWkv4Chunk + 1, 2 * kWkv4Chunk + 5})
    check_forward(Problem(Layout::plain(2, length), 0.2));
}

TEST_CASE("wkv scan starts anew at documents and never reads padding") {
  Problem q(kDocuments, 0.2);
  for (Index t = 40; t < q.layout.length; ++t)
    for (const std::size_t i : {0u, 1u}) q.in[i].data()[(q.layout.length + t) * kDim + 3] = NAN;
  check_forward(q);
  const auto results = outputs_then_gradients(scan(kDocuments), q.in);
  for (const Tensor& x : results)
    for (const Real value : x.span()) REQUIRE(std::isfinite(value));
}

TEST_CASE("wkv scan stays exact under strong and vanishing decay, large and equal keys") {
  for (const double decay : {1e-7, 3.0, 1e4})
    for (const double keys : {0.0, 1.0, 1e3}) {
      CAPTURE(decay);
      CAPTURE(keys);
      check_forward(Problem(Layout::plain(2, 150), decay, keys), kIsDouble ? 1e-10 : 2e-4);
    }
}

TEST_CASE("wkv scan adds up small decays over a long stream") {
  check_forward(Problem(Layout::plain(1, 20000), 1e-5), kIsDouble ? 1e-10 : 1e-4);
  check_forward(Problem(Layout::plain(1, 20000), 1e-7), kIsDouble ? 1e-10 : 1e-4);
}

TEST_CASE("wkv scan gradients agree with finite differences") {
  for (const double decay : {0.05, 2.0}) {
    CAPTURE(decay);
    check_gradients(scan(Layout::plain(2, 7)), Problem(Layout::plain(2, 7), decay).in);
    check_gradients(scan(Layout::plain(1, 80)), Problem(Layout::plain(1, 80), decay, 4).in);
    check_gradients(scan(kDocuments), Problem(kDocuments, decay).in);
  }
}

TEST_CASE("wkv scan does not depend on the number of threads") {
  check_threads(scan(kDocuments), Problem(kDocuments, 0.2).in);
}

TEST_CASE("wkv scan without decay, bonus and state is one with zeros, and nothing read") {
  const Layout layout = Layout::plain(2, 40);
  Problem q(layout, 0.2);
  for (const std::size_t i : {2u, 3u, 4u, 5u}) std::fill(q.in[i].span().begin(), q.in[i].span().end(), Real{0});
  std::fill(q.in[6].span().begin(), q.in[6].span().end(), kernels::kWkvNothing);
  Tape tape(false);
  const std::vector<Var> with = run(tape, {q.in.begin(), q.in.end()}, layout);
  const Wkv4Output without = wkv4_scan(tape, {.k = q.in[0], .v = q.in[1]}, layout);
  CHECK(same_bits(with[0].value(), without.y.value()));
  CHECK(same_bits(with[2].value(), without.b.value()));
}

TEST_CASE("wkv step equals the scan") {
  const Index length = 2 * kWkv4Chunk + 5;
  const Problem q(Layout::plain(1, length), 0.3);
  Tape tape(false);
  const std::vector<Var> out = run(tape, {q.in.begin(), q.in.end()}, q.layout);
  const Tensor a = q.in[4].clone(), b = q.in[5].clone(), p = q.in[6].clone();
  Tensor y({1, length, kDim});
  for (Index t = 0; t < length; ++t)
    wkv4_step(q.in[0].data() + t * kDim, q.in[1].data() + t * kDim, q.in[2].data(), q.in[3].data(),
              {a.data(), b.data(), p.data()}, y.data() + t * kDim, kDim);
  CHECK(relative_error(y, out[0].value()) < kSame);
  CHECK(relative_error(a, out[1].value()) < kSame);
  CHECK(relative_error(b, out[2].value()) < kSame);
  CHECK(relative_error(p, out[3].value()) < kSame);
}

TEST_CASE("wkv scan names shapes that do not fit") {
  Tape tape(false);
  const Problem q(Layout::plain(2, 7), 0.2);
  const Var k(q.in[0]), w(q.in[2]), a(q.in[4]);
  CHECK_THROWS_AS(wkv4_scan(tape, {.k = k, .v = w}, q.layout), ShapeError);
  CHECK_THROWS_AS(wkv4_scan(tape, {.k = k, .v = k, .log_decay = a}, q.layout), ShapeError);
  CHECK_THROWS_AS(wkv4_scan(tape, {.k = k, .v = k, .a = a}, q.layout), ShapeError);
}
