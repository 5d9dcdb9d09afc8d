#include "mixers/slot_memory.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "op_checks.h"
#include "scan/log_sum_scan.h"

using namespace quipu;

namespace {

constexpr Index kHeads = 2, kKey = 3, kValue = 4, kSlots = 5;

/// Bounded-memory control as its definition says, in double: every slot is the average of all tokens so far under the
/// softmax of its logits, kept as sums relative to the largest logit.
std::vector<double> averages(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& s) {
  const Index length = q.extent(1);
  std::vector<double> y;
  std::vector<double> top(kHeads * kSlots, -INFINITY), total(kHeads * kSlots, 0), keys(kHeads * kSlots * kKey, 0),
      values(kHeads * kSlots * kValue, 0);
  const auto number = [](const Tensor& x, Index i) { return static_cast<double>(x.data()[i]); };
  for (Index t = 0; t < length; ++t)
    for (Index h = 0; h < kHeads; ++h) {
      const Index row = t * kHeads + h;
      std::vector<double> weight(kSlots), o(kValue, 0);
      double sum = 0;
      for (Index m = 0; m < kSlots; ++m) {
        const auto i = static_cast<std::size_t>(h * kSlots + m);
        const double logit = number(s, row * kSlots + m), higher = std::max(top[i], logit);
        const double keep = std::exp(top[i] - higher), add = std::exp(logit - higher);
        top[i] = higher;
        total[i] = total[i] * keep + add;
        double score = 0;
        for (Index c = 0; c < kKey; ++c) {
          double& cell = keys[i * kKey + static_cast<std::size_t>(c)];
          cell = cell * keep + add * number(k, row * kKey + c);
          score += number(q, row * kKey + c) * cell / total[i];
        }
        for (Index c = 0; c < kValue; ++c) {
          double& cell = values[i * kValue + static_cast<std::size_t>(c)];
          cell = cell * keep + add * number(v, row * kValue + c);
        }
        sum += weight[static_cast<std::size_t>(m)] = std::exp(score);
      }
      for (Index m = 0; m < kSlots; ++m)
        for (Index c = 0; c < kValue; ++c) {
          const auto i = static_cast<std::size_t>(h * kSlots + m);
          o[static_cast<std::size_t>(c)] +=
              weight[static_cast<std::size_t>(m)] / sum * values[i * kValue + static_cast<std::size_t>(c)] / total[i];
        }
      y.insert(y.end(), o.begin(), o.end());
    }
  return y;
}

void check(Index length, double logit_size, double key_size, double tolerance) {
  CAPTURE(length);
  CAPTURE(logit_size);
  const Tensor q = random_tensor({1, length, kHeads, kKey}, 1), k = random_tensor({1, length, kHeads, kKey}, 2);
  if (key_size == 0) std::fill(k.span().begin(), k.span().end(), Real{1});
  const Tensor v = random_tensor({1, length, kHeads, kValue}, 3);
  const Tensor s = random_tensor({1, length, kHeads, kSlots}, 4, logit_size);
  Tape tape(false);
  const Layout layout = Layout::plain(1, length);
  const LogSumScanOutput share = log_sum_scan(tape, s, {}, layout);
  Var keys, values;
  const Var o = slot_memory(
      tape,
      {.q = q, .k = k, .v = v, .key_weight = share.weight, .value_weight = share.weight, .log_decay = share.log_decay},
      layout, keys, values);
  CHECK(relative_error(o.value().span(), averages(q, k, v, s)) < tolerance);
}

}  // namespace

TEST_CASE("slots under bounded-memory control are averages: mild logits, hard ones, equal keys, long streams") {
  constexpr double kTight = kIsDouble ? 1e-12 : 2e-5;
  for (const double logits : {1e-7, 1.0, 30.0, 1e4}) check(200, logits, 1, kTight);
  check(200, 1, 0, kTight);
  check(30000, 1, 1, kIsDouble ? 1e-11 : 1e-4);
}
