#include "scan/outer_scan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "base/rng.h"
#include "compare.h"

using namespace quipu;

namespace {

Tensor random(const Shape& shape, std::uint64_t site, double deviation = 1) {
  Tensor x(shape);
  const Rng rng(7, 0, site);
  for (Index i = 0; i < x.count(); ++i)
    x.data()[i] = static_cast<Real>(deviation * rng.normal(static_cast<std::uint64_t>(i)));
  return x;
}

/// A scan's inputs as plain tensors, and the obvious recurrence over them in double.
struct Problem {
  Decay decay;
  Layout layout;
  Index groups;
  Tensor q, k, v, g, state, z;

  Problem(Decay kind, Layout where, double strength, bool normaliser, Index query_groups = 1)
      : decay(kind), layout(std::move(where)), groups(query_groups) {
    const Index b = layout.batch, t = layout.length, h = 3, kw = 4, vw = 5;
    q = random({b, t, h * groups, kw}, 1);
    k = random({b, t, h, kw}, 2);
    v = random({b, t, h, vw}, 3);
    if (decay != Decay::none)
      g = random({b, t, h, decay == Decay::scalar ? 1 : decay == Decay::key ? kw : vw}, 4, strength);
    for (Real& x : g.span()) x = -std::abs(x);
    state = random({b, h, kw, vw}, 5);
    if (normaliser) z = random({b, h, kw}, 6);
  }

  OuterScanInput input(bool leaves) const {
    const auto var = [&](const Tensor& x) { return !x.defined() ? Var() : leaves ? Var::leaf(x) : Var(x); };
    return {decay, var(q), var(k), var(v), var(g), var(state), z.defined(), var(z)};
  }
};

struct Reference {
  std::vector<double> y, denominator, state, z;
};

Reference recur(const Problem& p) {
  const Index batch = p.layout.batch, length = p.layout.length, heads = p.k.extent(2), kw = p.k.extent(3),
              vw = p.v.extent(3);
  const Index queries = p.q.extent(2);
  Reference r;
  r.y.assign(static_cast<std::size_t>(batch * length * queries * vw), 0);
  r.denominator.assign(static_cast<std::size_t>(batch * length * queries), 1);
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h) {
      std::vector<double> s(static_cast<std::size_t>(kw * vw)), z(static_cast<std::size_t>(kw), 0);
      for (Index i = 0; i < kw * vw; ++i)
        s[static_cast<std::size_t>(i)] = p.state.data()[(b * heads + h) * kw * vw + i];
      if (p.z.defined())
        for (Index i = 0; i < kw; ++i) z[static_cast<std::size_t>(i)] = p.z.data()[(b * heads + h) * kw + i];
      for (const Span& span : p.layout.spans(b)) {
        if (span.fresh) std::fill(s.begin(), s.end(), 0.0), std::fill(z.begin(), z.end(), 0.0);
        for (Index t = span.begin; t < span.end; ++t) {
          const Index row = (b * length + t) * heads + h;
          for (Index i = 0; i < kw; ++i) {
            const double key = p.k.data()[row * kw + i];
            double factor = 1;
            if (p.decay == Decay::scalar) factor = std::exp(static_cast<double>(p.g.data()[row]));
            if (p.decay == Decay::key) factor = std::exp(static_cast<double>(p.g.data()[row * kw + i]));
            z[static_cast<std::size_t>(i)] = factor * z[static_cast<std::size_t>(i)] + key;
            for (Index j = 0; j < vw; ++j) {
              if (p.decay == Decay::value) factor = std::exp(static_cast<double>(p.g.data()[row * vw + j]));
              double& cell = s[static_cast<std::size_t>(i * vw + j)];
              cell = factor * cell + key * static_cast<double>(p.v.data()[row * vw + j]);
            }
          }
          for (Index group = 0; group < p.groups; ++group) {
            const Index query = (b * length + t) * queries + h * p.groups + group;
            double den = 0;
            for (Index i = 0; i < kw; ++i) {
              const double qi = p.q.data()[query * kw + i];
              den += qi * z[static_cast<std::size_t>(i)];
              for (Index j = 0; j < vw; ++j)
                r.y[static_cast<std::size_t>(query * vw + j)] += qi * s[static_cast<std::size_t>(i * vw + j)];
            }
            r.denominator[static_cast<std::size_t>(query)] = den;
          }
        }
      }
      r.state.insert(r.state.end(), s.begin(), s.end());
      r.z.insert(r.z.end(), z.begin(), z.end());
    }
  return r;
}

void check_forward(const Problem& p, double tolerance) {
  Tape tape(false);
  const OuterScanOutput out = outer_scan(tape, p.input(false), p.layout);
  const Reference r = recur(p);
  CHECK(relative_error(out.y.value().span(), r.y) < tolerance);
  CHECK(relative_error(out.state.value().span(), r.state) < tolerance);
  if (!p.z.defined()) return;
  CHECK(relative_error(out.denominator.value().span(), r.denominator) < tolerance);
  CHECK(relative_error(out.z.value().span(), r.z) < tolerance);
}

/// sum of all outputs times fixed cotangents.
double loss_of(const Problem& p) {
  const Reference r = recur(p);
  const auto weighted = [](const std::vector<double>& x, std::uint64_t site) {
    const Tensor c = random({static_cast<Index>(x.size())}, site);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * static_cast<double>(c.data()[i]);
    return sum;
  };
  double sum = weighted(r.y, 11) + weighted(r.state, 12);
  if (p.z.defined()) sum += weighted(r.denominator, 13) + weighted(r.z, 14);
  return sum;
}

[[maybe_unused]] void check_gradients(Problem p) {
  Tape tape(true);
  const OuterScanInput in = p.input(true);
  const OuterScanOutput out = outer_scan(tape, in, p.layout);
  std::vector<std::pair<Var, Tensor>> seeds{{out.y, random({out.y.value().count()}, 11)},
                                            {out.state, random({out.state.value().count()}, 12)}};
  if (p.z.defined()) {
    seeds.emplace_back(out.denominator, random({out.denominator.value().count()}, 13));
    seeds.emplace_back(out.z, random({out.z.value().count()}, 14));
  }
  tape.backward(seeds);
  std::uint64_t site = 20;
  for (const auto& [x, var] : {std::pair{&p.q, &in.q},
                               {&p.k, &in.k},
                               {&p.v, &in.v},
                               {&p.g, &in.log_decay},
                               {&p.state, &in.state},
                               {&p.z, &in.z}}) {
    if (!x->defined()) continue;
    INFO("input " << site);
    const Tensor direction = random(x->shape(), ++site), saved = x->clone();
    double analytic = 0, scale = 0;
    for (Index i = 0; i < x->count(); ++i) {
      const double term =
          static_cast<double>(var->gradient()->sum().data()[i]) * static_cast<double>(direction.data()[i]);
      analytic += term, scale += std::abs(term);
    }
    const double step = 1e-5;
    double difference = 0;
    for (const double sign : {1.0, -1.0}) {
      for (Index i = 0; i < x->count(); ++i)
        x->data()[i] = saved.data()[i] + static_cast<Real>(sign * step) * direction.data()[i];
      difference += sign * loss_of(p) / (2 * step);
    }
    std::copy(saved.span().begin(), saved.span().end(), x->data());
    CHECK(std::abs(analytic - difference) < 1e-7 * scale + 1e-9);
  }
}

const std::map<Decay, const char*> kDecays{
    {Decay::none, "none"}, {Decay::scalar, "scalar"}, {Decay::key, "key"}, {Decay::value, "value"}};

#ifdef QUIPU_DOUBLE
constexpr double kTolerance = 1e-12;
#else
constexpr double kTolerance = 2e-6;
#endif

}  // namespace

TEST_CASE("outer scan equals the recurrence, at lengths around its chunk") {
  for (const auto& [decay, name] : kDecays)
    for (const Index length :
         {Index{1}, Index{2}, Index{7}, kOuterChunk - 1, kOuterChunk, kOuterChunk + 1, 2 * kOuterChunk + 5})
      for (const bool normaliser : {false, true}) {
        if (normaliser && decay == Decay::value) continue;
        CAPTURE(name);
        CAPTURE(length);
        check_forward(Problem(decay, Layout::plain(2, length), 0.2, normaliser), kTolerance);
        check_forward(Problem(decay, Layout::plain(2, length), 0.2, normaliser, 2), kTolerance);
      }
}

TEST_CASE("outer scan stays exact under strong and vanishing decay") {
  for (const auto& [decay, name] : kDecays)
    for (const double strength : {1e-7, 3.0, 50.0, 1e4}) {
      CAPTURE(name);
      CAPTURE(strength);
      check_forward(Problem(decay, Layout::plain(2, 150), strength, decay != Decay::value), kTolerance);
    }
}

TEST_CASE("outer scan starts anew at documents and never reads padding") {
  Layout layout{3, 100, {100, 70, 0}, {{0, 1, 40, 99}, {65}, {}}};
  for (const auto& [decay, name] : kDecays) {
    CAPTURE(name);
    Problem p(decay, layout, 0.3, decay != Decay::value);
    for (Index i = 70; i < 100; ++i) p.k.data()[(100 + i) * 12] = NAN;
    check_forward(p, kTolerance);
  }
}

#ifdef QUIPU_DOUBLE
TEST_CASE("outer scan gradients agree with finite differences") {
  const Layout documents{2, 2 * kOuterChunk + 5, {2 * kOuterChunk + 5, 90}, {{30, 64}, {}}};
  for (const auto& [decay, name] : kDecays)
    for (const double strength : {0.1, 6.0})
      for (const Index groups : {1, 2}) {
        CAPTURE(name);
        CAPTURE(strength);
        CAPTURE(groups);
        check_gradients(Problem(decay, Layout::plain(2, 70), strength, false, groups));
        check_gradients(Problem(decay, documents, strength, decay != Decay::value, groups));
      }
}
#endif

TEST_CASE("outer scan step equals the scan") {
  for (const auto& [decay, name] : kDecays) {
    CAPTURE(name);
    const Problem p(decay, Layout::plain(1, 9), 0.5, decay != Decay::value, 2);
    const Reference r = recur(p);
    const Index heads = 3, kw = 4, vw = 5;
    const Tensor state = p.state.clone(), z = p.z.clone();
    Tensor y({1, 9, heads * 2, vw}), denominator({1, 9, heads * 2});
    const Index dw = p.g.defined() ? p.g.extent(3) : 0;
    std::vector<Real> factor(static_cast<std::size_t>(std::max<Index>(dw, 1)));
    for (Index t = 0; t < 9; ++t)
      for (Index h = 0; h < heads; ++h) {
        const Index row = t * heads + h;
        for (Index c = 0; c < dw; ++c) factor[static_cast<std::size_t>(c)] = std::exp(p.g.data()[row * dw + c]);
        outer_scan_step(decay, {p.q.data() + row * 2 * kw, 2, kw, kw}, p.k.data() + row * kw, p.v.data() + row * vw,
                        factor.data(), {state.data() + h * kw * vw, kw, vw, vw},
                        z.defined() ? z.data() + h * kw : nullptr, {y.data() + row * 2 * vw, 2, vw, vw},
                        denominator.data() + row * 2);
      }
    CHECK(relative_error(y.span(), r.y) < kTolerance);
    CHECK(relative_error(state.span(), r.state) < kTolerance);
    if (z.defined()) CHECK(relative_error(denominator.span(), r.denominator) < kTolerance);
  }
}
