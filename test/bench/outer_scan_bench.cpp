// The outer-product scan, forward and backward, against its matrix products alone (the scan without decay), in ns of
// processor time a token and head: 2 lanes of 2048 tokens, 4 heads, K = V = 64.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/rng.h"
#include "scan/outer_scan.h"

namespace {

using namespace quipu;

constexpr Index kBatch = 2, kLength = 2048, kHeads = 4, kWidth = 64;

Tensor random(const Shape& shape, std::uint64_t site, double deviation = 1) {
  Tensor x(shape);
  const Rng rng(7, 0, site);
  for (Index i = 0; i < x.count(); ++i)
    x.data()[i] = static_cast<Real>(deviation * rng.normal(static_cast<std::uint64_t>(i)));
  return x;
}

/// Of all threads.
double ns_since(std::clock_t start) {
  return 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC /
         static_cast<double>(kBatch * kLength * kHeads);
}

/// The best of several runs.
void measure(const char* name, Decay decay, double strength, bool bonus = false, Index keys = kHeads) {
  OuterScanInput in{.decay = decay};
  in.q = Var::leaf(random({kBatch, kLength, keys, kWidth}, 1));
  in.k = Var::leaf(random({kBatch, kLength, keys, kWidth}, 2));
  in.v = Var::leaf(random({kBatch, kLength, kHeads, kWidth}, 3));
  if (bonus) in.bonus = Var::leaf(random({kHeads, kWidth}, 4));
  if (decay != Decay::none) {
    const Tensor g = random({kBatch, kLength, kHeads, decay == Decay::scalar ? 1 : kWidth}, 5, strength);
    for (Real& x : g.span()) x = -std::abs(x);
    in.log_decay = Var::leaf(g);
  }
  const Tensor dy = random({kBatch, kLength, kHeads, kWidth}, 6);
  double forward = 1e300, backward = 1e300;
  for (int repeat = 0; repeat < 12; ++repeat) {
    Tape tape(true);
    std::clock_t start = std::clock();
    const OuterScanOutput out = outer_scan(tape, in, Layout::plain(kBatch, kLength));
    forward = std::min(forward, ns_since(start));
    start = std::clock();
    tape.backward(out.y, dy);
    backward = std::min(backward, ns_since(start));
    for (const Var* x : {&in.q, &in.k, &in.v, &in.log_decay, &in.bonus})
      if (x->defined()) x->gradient()->take();
  }
  fmt::print("{:<28} {:8.0f} {:8.0f}\n", name, forward, backward);
}

}  // namespace

int main() {
  fmt::print("{:<28} {:>8} {:>8}\n", "ns a token and head", "forward", "backward");
  measure("no decay", Decay::none, 0);
  measure("scalar decay", Decay::scalar, 0.05);
  measure("scalar decay, one key head", Decay::scalar, 0.05, false, 1);
  measure("decay on keys", Decay::key, 0.05);
  measure("decay on keys, strong", Decay::key, 2);
  measure("decay on keys, bonus", Decay::key, 0.05, true);
  measure("decay on values", Decay::value, 0.05);
  measure("decay on values, strong", Decay::value, 2);
  return 0;
}
