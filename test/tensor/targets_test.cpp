#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "tensor/activation.h"
#include "tensor/decay_rows.h"
#include "tensor/kernels.h"
#include "tensor/kernels_channel.h"
#include "tensor/kernels_diagonal.h"
#include "tensor/norm_rows.h"
#include "tensor/rwkv7_rows.h"
#include "tolerance.h"

namespace quipu {
namespace {

/// RWKV-7's keys and output, and their gradients, from three rows of numbers, made small: gradients are sums of
/// products of four, and what cancels in them is of their size.
void keep_rwkv7(std::vector<Real> a, std::vector<Real> b, std::vector<Real> w, std::vector<Real>& results) {
  const auto n = static_cast<Index>(a.size());
  kernels::scale(a.data(), Real{0.1F}, a.data(), n);
  for (auto* row : {&b, &w}) kernels::scale(row->data(), Real{0.3F}, row->data(), n);
  std::vector<std::vector<Real>> out(6, std::vector<Real>(a.size(), Real{0.5}));
  const auto keep_all = [&] {
    for (const auto& v : out) results.insert(results.end(), v.begin(), v.end());
  };
  const kernels::Rwkv7KeyRow keys{a.data(), b.data(), w.data(), a.data()};
  kernels::rwkv7_keys(out[0].data(), out[1].data(), out[2].data(), keys, n);
  keep_all();
  kernels::rwkv7_keys_backward(out[0].data(), out[1].data(), out[2].data(), out[3].data(), a.data(), b.data(), w.data(),
                               keys, n);
  keep_all();
  const kernels::Rwkv7OutputRow output{a.data(), b.data(), w.data(), a.data(), b.data(), w.data()};
  kernels::rwkv7_output(out[0].data(), output, n);
  keep_all();
  kernels::rwkv7_output_backward(
      {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data()}, a.data(), output, n);
  keep_all();
}

/// Everything that the kernels yield for one length, in one array.
std::vector<Real> all_results(std::size_t size) {
  const Rng rng(1, 0, size);
  const auto n = static_cast<Index>(size);
  std::vector<Real> a(size), b(size), w(size), y(size), z(size), results;
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = static_cast<Real>(3 * rng.normal(3 * i));
    b[i] = static_cast<Real>(rng.normal(3 * i + 1));
    w[i] = static_cast<Real>(rng.normal(3 * i + 2));
  }
  const auto keep = [&](const std::vector<Real>& v) { results.insert(results.end(), v.begin(), v.end()); };
  for (const Activation activation : kActivations) {
    kernels::activate(activation, y.data(), a.data(), n);
    keep(y);
    kernels::activate_backward(activation, y.data(), b.data(), (keeps_output(activation) ? y : a).data(), n);
    keep(y);
    kernels::gated(activation, y.data(), a.data(), b.data(), n);
    keep(y);
    kernels::gated_backward(activation, y.data(), z.data(), w.data(), a.data(), b.data(), n);
    keep(y);
    keep(z);
  }
  kernels::multiply_exp_difference(y.data(), w.data(), a.data(), b.data(), n);
  keep(y);
  kernels::softmax_row(y.data(), a.data(), Real{0.5}, n);
  keep(y);
  kernels::softmax_row_backward(y.data(), b.data(), y.data(), Real{0.5}, n);
  keep(y);
  kernels::rotate(y.data(), z.data(), a.data(), b.data(), w.data(), a.data(), -1, n);
  keep(y);
  keep(z);
  const auto moments = kernels::row_moments(a.data(), n);
  const kernels::RowScale by{moments.mean, 1 / std::sqrt(moments.variance + Real{0.5})};
  kernels::normalize_row(y.data(), a.data(), by, w.data(), b.data(), n);
  keep(y);
  const auto sums = kernels::norm_row_sums(b.data(), a.data(), by, w.data(), n);
  kernels::norm_row_backward(y.data(), b.data(), a.data(), by, w.data(), sums, n);
  keep(y);
  kernels::norm_row_weights(y.data(), z.data(), b.data(), a.data(), by, n);
  keep(y);
  keep(z);
  keep_rwkv7(a, b, w, results);
  std::vector<double> totals(size, 0.5);
  results.push_back(kernels::add_to_sums(totals.data(), y.data(), a.data(), -4, n) ? 1 : 0);
  keep(y);
  kernels::add_products(totals.data(), a.data(), b.data(), n);
  kernels::subtract_products(totals.data(), b.data(), w.data(), n);
  kernels::round_sums(y.data(), totals.data(), n);
  keep(y);
  for (const Real value : {kernels::dot(a.data(), b.data(), n), kernels::sum(a.data(), n), kernels::max(a.data(), n),
                           kernels::sum_of_squares(a.data(), n), sums.plain, sums.against})
    results.push_back(value);
  a.back() = NAN;
  results.push_back(std::isnan(kernels::max(a.data(), n)) ? 1 : 0);
  results.push_back(kernels::all_finite(a.data(), n) ? 1 : 0);
  results.push_back(kernels::all_finite(b.data(), n) ? 1 : 0);
  return results;
}

/// What the kernels of scans and convolutions yield.
std::vector<Real> scan_results() {
  constexpr Index kTokens = 5, kStates = 3, kWidth = 48, kRow = kernels::kDiagonalTile, kBlock = kStates * kRow;
  const Rng rng(2, 0, 0);
  std::uint64_t drawn = 0;
  const auto draw = [&](Index n, double sign = 0) {
    std::vector<Real> x(static_cast<std::size_t>(n));
    for (Real& v : x) {
      const double value = rng.normal(drawn++);
      v = static_cast<Real>(sign == 0 ? value : sign * std::abs(value));
    }
    return x;
  };
  const auto delta = draw(kTokens * kRow, 1), u = draw(kTokens * kRow), dy = draw(kTokens * kRow);
  const auto b = draw(kTokens * kStates), c = draw(kTokens * kStates), rates = draw(kBlock, -1), skip = draw(kRow);
  const kernels::DiagonalTile tile{kTokens,  kWidth,   kStates,  kRow,         delta.data(),
                                   u.data(), b.data(), c.data(), rates.data(), skip.data()};
  auto h = draw(kBlock), y = draw(kTokens * kRow), history = draw((kTokens + 1) * kBlock);
  auto decays = draw(kTokens * kBlock), dh = draw(kBlock), da = draw(kBlock), dskip = draw(kRow);
  auto ddelta = draw(kTokens * kRow), du = draw(kTokens * kRow), db = draw(kTokens * kStates), dc = db;
  std::vector<Real> room(static_cast<std::size_t>(kernels::diagonal_room(kTokens, kStates)));
  kernels::diagonal_forward(tile, h.data(), y.data());
  kernels::diagonal_history(tile, history.data(), decays.data());
  kernels::diagonal_backward(
      tile, history.data(), decays.data(), dy.data(),
      {dh.data(), da.data(), dskip.data(), ddelta.data(), du.data(), db.data(), dc.data(), room.data()});
  auto step = draw(7), held = draw(7 * kStates);
  kernels::diagonal_step(step.data(), held.data(), u.data(), delta.data(), rates.data(), b.data(), c.data(),
                         skip.data(), 7, kStates);
  std::vector<Real> results;
  for (const auto* x : {&h, &y, &history, &decays, &dh, &da, &dskip, &ddelta, &du, &db, &dc, &step, &held})
    results.insert(results.end(), x->begin(), x->end());
  for (const Index taps : {1, 3, 4, 7}) {
    std::vector<const Real*> rows, weights;
    for (Index j = 0; j < taps; ++j) rows.push_back(u.data() + j), weights.push_back(dy.data() + 2 * j);
    kernels::weighted_rows(y.data(), skip.data(), weights.data(), rows.data(), taps, kWidth + 1);
    results.insert(results.end(), y.begin(), y.end());
  }
  return results;
}

void use_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

TEST_CASE("every instruction set that this processor has gives the same results, to rounding") {
  int compared = 0;
  for (const std::size_t size : {1u, 5u, 17u, 64u, 67u}) {
    const auto results_of = [size] {
      std::vector<Real> all = all_results(size);
      // A scan's results are sums that cancel: they count in units of their largest.
      std::vector<Real> scans = scan_results();
      Real largest = 1;
      for (const Real x : scans) largest = std::max(largest, std::abs(x));
      for (Real& x : scans) x /= largest;
      all.insert(all.end(), scans.begin(), scans.end());
      return all;
    };
    const std::vector<Real> widest = results_of();
    for (const std::int64_t target : {HWY_SCALAR, HWY_EMU128, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if ((hwy::SupportedTargets() & target) == 0) continue;
      CAPTURE(hwy::TargetName(target));
      CAPTURE(size);
      use_targets(target);
      const std::vector<Real> results = results_of();
      use_targets(0);
      REQUIRE(results.size() == widest.size());
      const double tolerance = kIsDouble ? 1e-12 : 2e-5;
      for (std::size_t i = 0; i < results.size(); ++i) {
        CAPTURE(i);
        const double scale = std::max(1.0, std::abs(static_cast<double>(widest[i])));
        REQUIRE(std::abs(static_cast<double>(results[i]) - widest[i]) <= tolerance * scale);
      }
      ++compared;
    }
  }
  MESSAGE("instruction sets compared: ", compared / 5);
  CHECK(compared >= 5);
}

}  // namespace quipu
