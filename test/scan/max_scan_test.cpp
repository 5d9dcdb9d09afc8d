#include "scan/max_scan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "op_checks.h"

using namespace quipu;

namespace {

const Layout kDocuments{3, 40, {40, 21, 0}, {{0, 1, 30}, {11}, {}}};

struct Reference {
  std::vector<double> phi, g, m;
};

/// Token by token, in double.
Reference recur(const Tensor& u, const Tensor& state, const Layout& layout) {
  const Index heads = u.extent(2), width = u.extent(3);
  Reference r;
  r.phi.assign(static_cast<std::size_t>(u.count()), 0);
  r.g.assign(static_cast<std::size_t>(u.count() / width), 0);
  for (Index b = 0; b < layout.batch; ++b)
    for (Index h = 0; h < heads; ++h) {
      double m = static_cast<double>(state.data()[b * heads + h]);
      for (const Span& span : layout.spans(b)) {
        if (span.fresh) m = static_cast<double>(kNoMaximum);
        for (Index t = span.begin; t < span.end; ++t) {
          const Index row = (b * layout.length + t) * heads + h;
          const double before = m;
          for (Index j = 0; j < width; ++j) m = std::max(m, static_cast<double>(u.data()[row * width + j]));
          r.g[static_cast<std::size_t>(row)] = before < -1e29 ? 0 : before - m;
          for (Index j = 0; j < width; ++j)
            r.phi[static_cast<std::size_t>(row * width + j)] =
                std::exp(static_cast<double>(u.data()[row * width + j]) - m);
        }
      }
      r.m.push_back(m);
    }
  return r;
}

void check_forward(const Tensor& u, const Tensor& state, const Layout& layout) {
  constexpr double kTolerance = kIsDouble ? 1e-14 : 1e-5;
  Tape tape(false);
  const MaxScanOutput out = max_scan(tape, u, state, layout);
  const Reference r = recur(u, state, layout);
  CHECK(relative_error(out.features.value().span(), r.phi) < kTolerance);
  CHECK(relative_error(out.log_decay.value().span(), r.g) < kTolerance);
  CHECK(relative_error(out.state.value().span(), r.m) < kTolerance);
}

}  // namespace

TEST_CASE("max scan equals the recurrence: from nothing, from a state, over documents and padding") {
  const Tensor nothing = Tensor::full({3, 4}, kNoMaximum), used = random_tensor({3, 4}, 2, 4);
  for (const double size : {1.0, 30.0}) {
    const Tensor u = random_tensor({3, 40, 4, 5}, 1, size);
    check_forward(u, nothing, Layout::plain(3, 40));
    check_forward(u, used, Layout::plain(3, 40));
    for (Index i = (40 + 21) * 20; i < u.count(); ++i) u.data()[i] = NAN;
    check_forward(u, used, kDocuments);
  }
}

TEST_CASE("max scan gradients, of the state too, and any number of threads") {
  const Operation operation = [](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    std::vector<Var> y;
    for (const Layout& layout : {Layout::plain(3, 40), kDocuments})
      for (const Var& state : {x[1], Var()}) {
        const MaxScanOutput out = max_scan(tape, x[0], state, layout);
        y.insert(y.end(), {out.features, out.log_decay});
        if (state.defined()) y.push_back(out.state);  // of nothing, a lane of padding keeps -1e30
      }
    return y;
  };
  const std::vector<Tensor> inputs{random_tensor({3, 40, 4, 5}, 1), random_tensor({3, 4}, 2)};
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
  Tape tape(false);
  CHECK_THROWS_AS(max_scan(tape, inputs[0], random_tensor({3, 5}, 2), Layout::plain(3, 40)), ShapeError);
}
