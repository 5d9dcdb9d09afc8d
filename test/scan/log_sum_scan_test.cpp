#include "scan/log_sum_scan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "op_checks.h"
#include "tensor/kernels.h"

using namespace quipu;

namespace {

#ifdef QUIPU_DOUBLE
constexpr double kTolerance = 1e-13;
#else
constexpr double kTolerance = 2e-6;
#endif

struct Reference {
  std::vector<double> g, w, z;
};

/// Token by token, in double.
Reference recur(const Tensor& s, const Tensor& state, const Layout& layout) {
  const Index channels = s.count() / (layout.batch * layout.length);
  Reference r;
  r.g.assign(static_cast<std::size_t>(s.count()), 0), r.w = r.g;
  for (Index b = 0; b < layout.batch; ++b)
    for (Index c = 0; c < channels; ++c) {
      double z = static_cast<double>(state.data()[b * channels + c]);
      for (const Span& span : layout.spans(b))
        for (Index t = span.begin; t < span.end; ++t) {
          const auto at = static_cast<std::size_t>((b * layout.length + t) * channels + c);
          const double logit = static_cast<double>(s.data()[at]);
          if ((span.fresh && t == span.begin) || z < -1e29) {
            z = logit;
            r.w[at] = 1;
            continue;
          }
          const double top = std::max(z, logit);
          const double total = top + std::log1p(std::exp(-std::abs(z - logit)));
          r.g[at] = logit > z ? (z - logit) - std::log1p(std::exp(z - logit)) : -std::log1p(std::exp(logit - z));
          r.w[at] = std::exp(std::min(0.0, logit - z)) / (1 + std::exp(-std::abs(z - logit)));
          z = total;
        }
      r.z.push_back(z);
    }
  return r;
}

void check_forward(const Tensor& s, const Tensor& state, const Layout& layout, double tolerance = kTolerance) {
  Tape tape(false);
  const LogSumScanOutput out = log_sum_scan(tape, s, state, layout);
  const Reference r = recur(s, state, layout);
  CHECK(relative_error(out.log_decay.value().span(), r.g) < tolerance);
  CHECK(relative_error(out.weight.value().span(), r.w) < tolerance);
  CHECK(relative_error(out.state.value().span(), r.z) < tolerance);
}

const Layout kDocuments{3, 40, {40, 21, 0}, {{0, 1, 30}, {11}, {}}};

}  // namespace

TEST_CASE("log-sum scan equals the recurrence: from nothing, from a state, over documents, for large logits") {
  const Tensor nothing = Tensor::full({3, 5, 14}, kernels::kNoLogSum), used = random_tensor({3, 5, 14}, 2, 4);
  for (const double size : {1e-3, 1.0, 30.0, 1e4}) {
    CAPTURE(size);
    const Tensor s = random_tensor({3, 40, 5, 14}, 1, size);
    check_forward(s, nothing, Layout::plain(3, 40));
    check_forward(s, used, Layout::plain(3, 40));
    check_forward(s, used, kDocuments);
  }
}

TEST_CASE("log-sum scan: padding is never read, an untouched lane keeps its state") {
  const Tensor s = random_tensor({3, 40, 3}, 1), state = random_tensor({3, 3}, 2);
  for (Index i = (40 + 21) * 3; i < s.count(); ++i) s.data()[i] = NAN;
  check_forward(s, state, kDocuments);
}

TEST_CASE("log-sum scan keeps its digits over a long stream") {
  const Index length = 100000;
  const Tensor s = random_tensor({1, length, 2}, 1, 0.5);
  check_forward(s, Tensor::full({1, 2}, kernels::kNoLogSum), Layout::plain(1, length));
}

TEST_CASE("log-sum scan gradients, of the state too, and any number of threads") {
  const Operation operation = [](Tape& tape, const std::vector<Var>& x) -> std::vector<Var> {
    const LogSumScanOutput plain = log_sum_scan(tape, x[0], x[1], Layout::plain(3, 40));
    const LogSumScanOutput parts = log_sum_scan(tape, x[0], x[1], kDocuments);
    const LogSumScanOutput first = log_sum_scan(tape, x[0], {}, Layout::plain(3, 40));
    return {plain.log_decay, plain.weight, plain.state, parts.log_decay, parts.weight,
            parts.state,     first.weight, first.state, first.log_decay};
  };
  const std::vector<Tensor> inputs{random_tensor({3, 40, 5, 14}, 1, 2), random_tensor({3, 5, 14}, 2)};
  check_gradients(operation, inputs);
  check_threads(operation, inputs);
}

TEST_CASE("log-sum scan step equals the scan") {
  const Tensor s = random_tensor({1, 9, 70}, 1, 3), z = Tensor::full({1, 70}, kernels::kNoLogSum);
  const Reference r = recur(s, z, Layout::plain(1, 9));
  Tensor g(s.shape()), w(s.shape());
  for (Index t = 0; t < 9; ++t)
    log_sum_scan_step(s.data() + t * 70, z.data(), g.data() + t * 70, w.data() + t * 70, 70);
  CHECK(relative_error(g.span(), r.g) < kTolerance);
  CHECK(relative_error(w.span(), r.w) < kTolerance);
  CHECK(relative_error(z.span(), r.z) < kTolerance);
}

TEST_CASE("log-sum scan: shapes that disagree") {
  Tape tape(false);
  CHECK_THROWS_AS(log_sum_scan(tape, random_tensor({2, 5, 3}, 1), {}, Layout::plain(2, 6)), ShapeError);
  CHECK_THROWS_AS(log_sum_scan(tape, random_tensor({2, 5, 3}, 1), random_tensor({2, 4}, 2), Layout::plain(2, 5)),
                  ShapeError);
}
