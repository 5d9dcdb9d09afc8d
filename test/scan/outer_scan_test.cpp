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

/// The forms of a scan: its extras, and who is shared by whom.
struct Form {
  bool normaliser = false;
  bool bonus = false;
  Index groups = 1;       ///< queries that read one state
  Index sharing = 1;      ///< states that share a key and a query
  bool constant = false;  ///< the same decay for all tokens
};

/// Every form that a decay has.
std::vector<Form> forms_of(Decay decay) {
  std::vector<Form> forms{{}, {.groups = 2}};
  if (decay != Decay::value)
    for (const Index groups : {1, 2}) {
      forms.push_back({.normaliser = true, .groups = groups});
      forms.push_back({.bonus = true, .groups = groups});
    }
  if (decay != Decay::key) {
    forms.push_back({.sharing = 3});
    forms.push_back({.sharing = 6});  // more than are worked off together
  }
  if (decay != Decay::none)
    for (const bool bonus : {false, true})
      if (!bonus || decay != Decay::value) forms.push_back({.bonus = bonus, .constant = true});
  return forms;
}

/// A scan's inputs as plain tensors, and the obvious recurrence over them in double.
struct Problem {
  Decay decay;
  Layout layout;
  Form form;
  Tensor q, k, v, g, state, z, bonus;

  Problem(Decay kind, Layout where, double strength, const Form& wanted = {})
      : decay(kind), layout(std::move(where)), form(wanted) {
    const Index b = layout.batch, t = layout.length, kw = 4, vw = 5;
    const Index keys = form.sharing > 1 ? 2 : 3, h = keys * form.sharing;
    q = random({b, t, keys * form.groups, kw}, 1);
    k = random({b, t, keys, kw}, 2);
    v = random({b, t, h, vw}, 3);
    if (decay != Decay::none)
      g = random({b, t, h, decay == Decay::scalar ? 1 : decay == Decay::key ? kw : vw}, 4, strength);
    if (form.constant) g = random({h, decay == Decay::scalar ? 1 : decay == Decay::key ? kw : vw}, 4, strength);
    for (Real& x : g.span()) x = -std::abs(x);
    state = random({b, h, kw, vw}, 5);
    if (form.normaliser) z = random({b, h, kw}, 6);
    if (form.bonus) bonus = random({h, kw}, 7);
  }

  OuterScanInput input(bool leaves) const {
    const auto var = [&](const Tensor& x) { return !x.defined() ? Var() : leaves ? Var::leaf(x) : Var(x); };
    return {decay, var(q), var(k), var(v), var(g), var(state), z.defined(), var(z), var(bonus)};
  }
};

struct Reference {
  std::vector<double> y, denominator, state, z;
};

/// One head of one lane, token by token, in double.
class HeadRecurrence {
 public:
  HeadRecurrence(const Problem& problem, Index lane, Index head)
      : p_(problem), lane_(lane), head_(head), heads_(p_.v.extent(2)), kw_(p_.k.extent(3)), vw_(p_.v.extent(3)) {
    const Index at = lane * heads_ + head;
    for (Index i = 0; i < kw_ * vw_; ++i) s_.push_back(p_.state.data()[at * kw_ * vw_ + i]);
    for (Index i = 0; i < kw_; ++i) z_.push_back(p_.z.defined() ? p_.z.data()[at * kw_ + i] : Real{0});
  }

  void run(Reference& r) {
    for (const Span& span : p_.layout.spans(lane_)) {
      if (span.fresh) std::fill(s_.begin(), s_.end(), 0.0), std::fill(z_.begin(), z_.end(), 0.0);
      for (Index t = span.begin; t < span.end; ++t) {
        const Index row = lane_ * p_.layout.length + t;
        if (p_.form.bonus) read(row, r);
        write(row);
        if (!p_.form.bonus) read(row, r);
      }
    }
    r.state.insert(r.state.end(), s_.begin(), s_.end());
    r.z.insert(r.z.end(), z_.begin(), z_.end());
  }

 private:
  double key(Index row, Index i) const {
    return p_.k.data()[(row * p_.k.extent(2) + head_ / p_.form.sharing) * kw_ + i];
  }
  double value(Index row, Index j) const { return p_.v.data()[(row * heads_ + head_) * vw_ + j]; }
  double factor(Index row, Index i, Index j) const {
    const Index at = (p_.form.constant ? 0 : row * heads_) + head_;
    if (p_.decay == Decay::none) return 1;
    return std::exp(static_cast<double>(p_.g.data()[p_.decay == Decay::scalar ? at
                                                    : p_.decay == Decay::key  ? at * kw_ + i
                                                                              : at * vw_ + j]));
  }

  void write(Index row) {
    for (Index i = 0; i < kw_; ++i) {
      double& z = z_[static_cast<std::size_t>(i)];
      if (p_.form.normaliser) z = factor(row, i, 0) * z + key(row, i);
      for (Index j = 0; j < vw_; ++j) {
        double& cell = s_[static_cast<std::size_t>(i * vw_ + j)];
        cell = factor(row, i, j) * cell + key(row, i) * value(row, j);
      }
    }
  }

  void read(Index row, Reference& r) const {
    const Index queries = p_.q.extent(2), reads = std::max(queries, heads_);
    for (Index group = 0; group < p_.form.groups; ++group) {
      const Index out = row * reads + head_ * p_.form.groups + group,
                  in = row * queries + out % reads / p_.form.sharing;
      double denominator = 0;
      for (Index i = 0; i < kw_; ++i) {
        const double q = p_.q.data()[in * kw_ + i];
        denominator += q * z_[static_cast<std::size_t>(i)];
        const double own = p_.form.bonus ? static_cast<double>(p_.bonus.data()[head_ * kw_ + i]) * key(row, i) : 0;
        for (Index j = 0; j < vw_; ++j)
          r.y[static_cast<std::size_t>(out * vw_ + j)] +=
              q * (s_[static_cast<std::size_t>(i * vw_ + j)] + own * value(row, j));
      }
      r.denominator[static_cast<std::size_t>(out)] = denominator;
    }
  }

  const Problem& p_;
  Index lane_, head_, heads_, kw_, vw_;
  std::vector<double> s_, z_;
};

Reference recur(const Problem& p) {
  const Index batch = p.layout.batch, heads = p.v.extent(2);
  const Index outputs = batch * p.layout.length * std::max(p.q.extent(2), heads);
  Reference r;
  r.y.assign(static_cast<std::size_t>(outputs * p.v.extent(3)), 0);
  r.denominator.assign(static_cast<std::size_t>(outputs), 1);
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h) HeadRecurrence(p, b, h).run(r);
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
                               {&p.z, &in.z},
                               {&p.bonus, &in.bonus}}) {
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
      for (const Form& form : forms_of(decay)) {
        CAPTURE(name);
        CAPTURE(length);
        CAPTURE(form.bonus);
        CAPTURE(form.sharing);
        check_forward(Problem(decay, Layout::plain(2, length), 0.2, form), kTolerance);
      }
}

TEST_CASE("outer scan stays exact under strong and vanishing decay") {
  for (const auto& [decay, name] : kDecays)
    for (const double strength : {1e-7, 3.0, 50.0, 1e4})
      for (const Form& form : forms_of(decay)) {
        CAPTURE(name);
        CAPTURE(strength);
        CAPTURE(form.bonus);
        CAPTURE(form.sharing);
        check_forward(Problem(decay, Layout::plain(2, 150), strength, form), kTolerance);
      }
}

TEST_CASE("outer scan stays exact over a long stream") {
  for (const auto& [decay, name] : kDecays)
    for (const double strength : {1e-7, 0.01}) {
      CAPTURE(name);
      CAPTURE(strength);
      const Form form{.bonus = decay == Decay::key};
      check_forward(Problem(decay, Layout::plain(1, 20000), strength, form), 20 * kTolerance);
    }
}

TEST_CASE("outer scan starts anew at documents and never reads padding") {
  const Layout layout{3, 100, {100, 70, 0}, {{0, 1, 40, 99}, {65}, {}}};
  for (const auto& [decay, name] : kDecays)
    for (const Form& form : forms_of(decay)) {
      CAPTURE(name);
      Problem p(decay, layout, 0.3, form);
      const Index row = p.k.extent(2) * p.k.extent(3);
      for (Index i = 70; i < 100; ++i) p.k.data()[(100 + i) * row] = NAN;
      check_forward(p, kTolerance);
    }
}

#ifdef QUIPU_DOUBLE
TEST_CASE("outer scan gradients agree with finite differences") {
  const Layout documents{2, 2 * kOuterChunk + 5, {2 * kOuterChunk + 5, 90}, {{30, 64}, {}}};
  for (const auto& [decay, name] : kDecays)
    for (const double strength : {0.1, 6.0})
      for (const Form& form : forms_of(decay)) {
        CAPTURE(name);
        CAPTURE(strength);
        CAPTURE(form.groups);
        CAPTURE(form.bonus);
        CAPTURE(form.sharing);
        check_gradients(Problem(decay, Layout::plain(2, 70), strength, form));
        check_gradients(Problem(decay, documents, strength, form));
      }
}
#endif

TEST_CASE("outer scan refuses forms and heads that it has not") {
  Tape tape(false);
  const Problem shared(Decay::key, Layout::plain(1, 3), 1, {.sharing = 3});
  CHECK_THROWS_AS(outer_scan(tape, shared.input(false), shared.layout), InternalError);
  Problem odd(Decay::none, Layout::plain(1, 3), 1, {.groups = 2});
  odd.q = random({1, 3, 4, 4}, 1);
  CHECK_THROWS_AS(outer_scan(tape, odd.input(false), odd.layout), ShapeError);
}

TEST_CASE("outer scan step equals the scan") {
  for (const auto& [decay, name] : kDecays)
    for (const Form& form : forms_of(decay)) {
      CAPTURE(name);
      const Index length = 9, kw = 4, vw = 5;
      const Problem p(decay, Layout::plain(1, length), 0.5, form);
      const Reference r = recur(p);
      const Index heads = p.v.extent(2), keys = p.k.extent(2);
      const Tensor state = p.state.clone(), z = p.z.defined() ? p.z.clone() : Tensor{};
      Tensor y({length, heads * form.groups, vw}), denominator({length, heads * form.groups});
      const Index dw = p.g.defined() ? p.g.extent(-1) : 0;
      std::vector<Real> factor(static_cast<std::size_t>(std::max<Index>(dw, 1)));
      for (Index t = 0; t < length; ++t)
        for (Index h = 0; h < heads; ++h) {
          const Index row = t * heads + h, key = t * keys + h / form.sharing;
          for (Index c = 0; c < dw; ++c)
            factor[static_cast<std::size_t>(c)] = std::exp(p.g.data()[(form.constant ? h : row) * dw + c]);
          outer_scan_step(decay, {p.q.data() + key * form.groups * kw, form.groups, kw, kw}, p.k.data() + key * kw,
                          p.v.data() + row * vw, factor.data(), {state.data() + h * kw * vw, kw, vw, vw},
                          z.defined() ? z.data() + h * kw : nullptr,
                          {y.data() + row * form.groups * vw, form.groups, vw, vw},
                          denominator.data() + row * form.groups, form.bonus ? p.bonus.data() + h * kw : nullptr);
        }
      CHECK(relative_error(y.span(), r.y) < kTolerance);
      CHECK(relative_error(state.span(), r.state) < kTolerance);
      if (z.defined()) CHECK(relative_error(denominator.span(), r.denominator) < kTolerance);
    }
}
