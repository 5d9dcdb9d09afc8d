#include "scan/delta_scan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "op_checks.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kTolerance = 1e-12;
#else
constexpr double kTolerance = 5e-6;
#endif

/// A form of the scan: where its decay acts, whether it is the general one, and how many state heads share a key head.
struct Form {
  Decay decay;
  bool general;
  Index groups = 1;

  std::string text() const {
    return std::string(general ? "general" : "delta rule") + ", decay " + std::to_string(static_cast<int>(decay)) +
           ", groups " + std::to_string(groups);
  }
};

std::vector<Form> all_forms() {
  std::vector<Form> forms;
  for (const Decay decay : {Decay::none, Decay::scalar, Decay::key})
    for (const bool general : {false, true})
      for (const Index groups : {1, 2}) forms.push_back({decay, general, groups});
  return forms;
}

/// A scan's inputs as plain tensors. Keys have length 1, as the layers make them, so that memories stay bounded.
struct Problem {
  static constexpr Index kKeyHeads = 3, kKey = 4, kValue = 5;
  Form form;
  Layout layout;
  Tensor q, k, v, beta, a, b, g, state;

  Problem(Form f, Layout where, double strength) : form(f), layout(std::move(where)) {
    const Index batch = layout.batch, t = layout.length, heads = kKeyHeads * form.groups;
    q = random_tensor({batch, t, kKeyHeads, kKey}, 1);
    k = random_tensor(q.shape(), 2);
    v = random_tensor({batch, t, heads, kValue}, 3);
    state = random_tensor({batch, heads, kKey, kValue}, 4);
    if (form.general) {
      a = random_tensor(q.shape(), 5);
      b = a.clone();
      for (Index row = 0; row < a.count() / kKey; ++row) {
        const Real step = static_cast<Real>(0.5 + 0.4 * std::sin(static_cast<double>(row)));
        unit(a.data() + row * kKey);
        for (Index c = 0; c < kKey; ++c) b.data()[row * kKey + c] = step * a.data()[row * kKey + c];
      }
    } else {
      beta = random_tensor({batch, t, heads}, 6);
      for (Real& x : beta.span()) x = static_cast<Real>(2 / (1 + std::exp(-static_cast<double>(x))));
      for (Index row = 0; row < k.count() / kKey; ++row) unit(k.data() + row * kKey);
    }
    if (form.decay == Decay::none) return;
    g = form.decay == Decay::scalar ? random_tensor({batch, t, heads}, 7, strength)
                                    : random_tensor({batch, t, heads, kKey}, 7, strength);
    for (Real& x : g.span()) x = -std::abs(x);
  }

  static void unit(Real* row) {
    double squares = 0;
    for (Index c = 0; c < kKey; ++c) squares += static_cast<double>(row[c]) * static_cast<double>(row[c]);
    for (Index c = 0; c < kKey; ++c) row[c] = static_cast<Real>(row[c] / std::sqrt(squares));
  }

  std::vector<Tensor> tensors() const { return {q, k, v, beta, a, b, g, state}; }

  DeltaScanInput input(const std::vector<Var>& x) const {
    return {form.decay, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], Real{0.7F}};
  }
  DeltaScanInput input() const {
    const auto all = tensors();
    return input({all.begin(), all.end()});
  }
};

struct Reference {
  std::vector<double> y, state;
};

/// One token of the obvious recurrence: S = D S - b (a S) + k v, or S = D S + beta k (v - k D S);  y += 0.7 q S.
void advance(const Problem& p, Index row, Index head, std::vector<double>& s, double* y) {
  constexpr Index kw = Problem::kKey, vw = Problem::kValue;
  const Index heads = p.v.extent(2), key = (row * Problem::kKeyHeads + head / p.form.groups) * kw;
  const Index own = row * heads + head;
  const auto at = [](const Tensor& x, Index i) { return static_cast<double>(x.data()[i]); };
  const std::vector<double> old = s;
  for (Index i = 0; i < kw && p.g.defined(); ++i)
    for (Index j = 0; j < vw; ++j)
      s[static_cast<std::size_t>(i * vw + j)] *= std::exp(at(p.g, p.form.decay == Decay::scalar ? own : own * kw + i));
  const std::vector<double> decayed = s;
  for (Index j = 0; j < vw; ++j) {
    double read = 0;
    for (Index i = 0; i < kw; ++i)
      read += p.form.general ? at(p.a, key + i) * old[static_cast<std::size_t>(i * vw + j)]
                             : at(p.k, key + i) * decayed[static_cast<std::size_t>(i * vw + j)];
    for (Index i = 0; i < kw; ++i) {
      double& cell = s[static_cast<std::size_t>(i * vw + j)];
      const double value = at(p.v, own * vw + j);
      cell += p.form.general ? -at(p.b, key + i) * read + at(p.k, key + i) * value
                             : at(p.beta, own) * at(p.k, key + i) * (value - read);
      y[j] += static_cast<double>(Real{0.7F}) * at(p.q, key + i) * cell;
    }
  }
}

Reference recur(const Problem& p) {
  const Index batch = p.layout.batch, length = p.layout.length, heads = p.v.extent(2);
  const Index size = Problem::kKey * Problem::kValue;
  Reference r;
  r.y.assign(static_cast<std::size_t>(p.v.count()), 0);
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h) {
      const Real* const start = p.state.data() + (b * heads + h) * size;
      std::vector<double> s(start, start + size);
      for (const Span& span : p.layout.spans(b)) {
        if (span.fresh) std::fill(s.begin(), s.end(), 0.0);
        for (Index t = span.begin; t < span.end; ++t)
          advance(p, b * length + t, h, s, r.y.data() + ((b * length + t) * heads + h) * Problem::kValue);
      }
      r.state.insert(r.state.end(), s.begin(), s.end());
    }
  return r;
}

void check_forward(const Problem& p, double tolerance = kTolerance) {
  Tape tape(false);
  const DeltaScanOutput out = delta_scan(tape, p.input(), p.layout);
  const Reference r = recur(p);
  CHECK(relative_error(out.y.value().span(), r.y) < tolerance);
  CHECK(relative_error(out.state.value().span(), r.state) < tolerance);
}

}  // namespace

TEST_CASE("delta scan equals the recurrence, at lengths around its chunk") {
  for (const Form& form : all_forms())
    for (const Index length :
         {Index{1}, Index{2}, Index{7}, kDeltaChunk - 1, kDeltaChunk, kDeltaChunk + 1, 2 * kDeltaChunk + 5}) {
      CAPTURE(form.text());
      CAPTURE(length);
      check_forward(Problem(form, Layout::plain(2, length), 0.2));
    }
}

TEST_CASE("delta scan stays exact under strong and vanishing decay") {
  for (const Form& form : all_forms())
    for (const double strength : {1e-7, 3.0, 50.0, 1e4}) {
      CAPTURE(form.text());
      CAPTURE(strength);
      check_forward(Problem(form, Layout::plain(2, 150), strength));
    }
}

TEST_CASE("delta scan stays exact where all keys are equal") {
  for (const Decay decay : {Decay::none, Decay::scalar, Decay::key})
    for (const double beta : {0.99, 1.0, 1.99}) {
      CAPTURE(beta);
      Problem p({decay, false}, Layout::plain(1, 2000), 1e-3);
      for (Index i = Problem::kKey; i < p.k.count(); ++i) p.k.data()[i] = p.k.data()[i % Problem::kKey];
      std::fill(p.beta.span().begin(), p.beta.span().end(), static_cast<Real>(beta));
      check_forward(p, beta > 1 ? 5 * kTolerance : kTolerance);  // errors shrink by 1 - beta = -0.99 a token only
    }
}

TEST_CASE("delta scan stays right over a long stream") {
  for (const Form& form : {Form{Decay::none, false}, {Decay::scalar, false}, {Decay::key, true}}) {
    CAPTURE(form.text());
    check_forward(Problem(form, Layout::plain(1, 20000), 0.02), 4 * kTolerance);
  }
}

TEST_CASE("delta scan starts anew at documents and never reads padding") {
  const Layout layout{3, 100, {100, 70, 0}, {{0, 1, 40, 99}, {65}, {}}};
  for (const Form& form : all_forms()) {
    CAPTURE(form.text());
    Problem p(form, layout, 0.3);
    for (Index i = 70; i < 100; ++i) p.k.data()[(100 + i) * Problem::kKeyHeads * Problem::kKey] = NAN;
    check_forward(p);
  }
}

#ifdef QUIPU_DOUBLE
TEST_CASE("delta scan gradients agree with finite differences") {
  const Layout documents{2, 133, {133, 90}, {{30, 64}, {}}};
  for (const Form& form : all_forms())
    for (const double strength : {0.1, 6.0})
      for (const Layout& layout : {Layout::plain(2, kDeltaChunk + 6), documents}) {
        CAPTURE(form.text());
        CAPTURE(strength);
        const Problem p(form, layout, strength);
        const auto run = [&](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
          const DeltaScanOutput out = delta_scan(tape, p.input(x), p.layout);
          return {out.y, out.state};
        };
        CHECK(gradient_error(run, p.tensors()) < kDifferenceTolerance);
      }
}
#endif

TEST_CASE("delta scan step equals the scan") {
  for (const Form& form : all_forms()) {
    CAPTURE(form.text());
    const Problem p(form, Layout::plain(1, 9), 0.5);
    const Reference r = recur(p);
    const Index heads = p.v.extent(2), kw = Problem::kKey, vw = Problem::kValue;
    const Tensor state = p.state.clone(), y({1, 9, heads, vw});
    const Index decays = p.g.defined() ? p.g.count() / (9 * heads) : 0;
    std::vector<Real> factor(static_cast<std::size_t>(kw));
    for (Index t = 0; t < 9; ++t)
      for (Index h = 0; h < heads; ++h) {
        const Index own = t * heads + h, key = (t * Problem::kKeyHeads + h / form.groups) * kw;
        for (Index c = 0; c < decays; ++c) factor[static_cast<std::size_t>(c)] = std::exp(p.g.data()[own * decays + c]);
        DeltaToken token{p.q.data() + key, p.k.data() + key, p.v.data() + own * vw};
        if (form.general)
          token.erase = p.a.data() + key, token.write = p.b.data() + key;
        else
          token.beta = p.beta.data()[own];
        token.decay_factor = factor.data(), token.scale = Real{0.7F};
        delta_scan_step(form.decay, token, {state.data() + h * kw * vw, kw, vw, vw}, y.data() + own * vw);
      }
    CHECK(relative_error(y.span(), r.y) < kTolerance);
    CHECK(relative_error(state.span(), r.state) < kTolerance);
  }
}
