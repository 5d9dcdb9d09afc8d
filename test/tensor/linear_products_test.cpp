#include "tensor/linear_products.h"

#include <doctest/doctest.h>
#include <hwy/targets.h>
#include <omp.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "grad/ops_linear.h"
#include "op_checks.h"
#include "tensor/blas.h"
#include "tensor/onednn.h"

namespace quipu {
namespace {

/// Puts back what is chosen for the process.
struct Restore {
  ~Restore() {
    set_linear_precision(Precision::f32);
    blas::use(blas::Library::openblas);
  }
};

/// op(a) op(b), summed in double, + c where `add`.
Tensor product(const Tensor& a, bool ta, const Tensor& b, bool tb, const Tensor& c = {}) {
  const Index m = a.extent(ta ? 1 : 0), inner = a.extent(ta ? 0 : 1), n = b.extent(tb ? 0 : 1);
  Tensor out({m, n});
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      double sum = c.defined() ? static_cast<double>(c.matrix()(i, j)) : 0;
      for (Index k = 0; k < inner; ++k)
        sum += static_cast<double>(ta ? a.matrix()(k, i) : a.matrix()(i, k)) *
               static_cast<double>(tb ? b.matrix()(j, k) : b.matrix()(k, j));
      out.matrix()(i, j) = static_cast<Real>(sum);
    }
  return out;
}

#ifndef QUIPU_DOUBLE
std::uint16_t nearest_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits | 0x400000) >> 16);
  const std::uint32_t rest = bits & 0xffff, kept = bits >> 16;
  return static_cast<std::uint16_t>(kept + (rest > 0x8000 || (rest == 0x8000 && kept % 2 == 1) ? 1 : 0));
}

Tensor rounded(const Tensor& x) {
  Tensor y = x.clone();
  for (Real& v : y.span()) v = std::bit_cast<float>(static_cast<std::uint32_t>(nearest_bf16(v)) << 16);
  return y;
}

TEST_CASE("linear products: numbers are rounded to the nearest bf16, ties to even") {
  std::vector<float> x{0.0F,
                       -0.0F,
                       1.0F,
                       INFINITY,
                       -INFINITY,
                       NAN,
                       -NAN,
                       std::numeric_limits<float>::max(),
                       std::numeric_limits<float>::denorm_min()};
  for (const std::uint32_t bits : {0x3f808000U, 0x3f818000U, 0x3f808001U, 0x3f807fffU, 0x7f800001U, 0xffffffffU,
                                   0x7fffffffU, 0xbf818000U, 0x00008000U, 0x7f7f8000U})
    x.push_back(std::bit_cast<float>(bits));
  const Rng rng(5, 0, 0);
  for (std::uint64_t i = 0; i < 100; ++i) x.push_back(static_cast<float>(rng.normal(i)));
  for (const std::int64_t targets : {std::int64_t{0}, std::int64_t{HWY_AVX2}, std::int64_t{HWY_SSE4}}) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (std::size_t n = 0; n <= x.size(); ++n) {
      std::vector<std::uint16_t> y(n + 1, 0xabcd);
      kernels::round_to_bf16(y.data(), x.data(), static_cast<Index>(n));
      for (std::size_t i = 0; i < n; ++i) REQUIRE(y[i] == nearest_bf16(x[i]));
      REQUIRE(y[n] == 0xabcd);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("linear products: oneDNN's are OpenBLAS's, to rounding") {
  if (!onednn::is_built_in()) {
    CHECK_THROWS_AS(blas::use(blas::Library::onednn), UsageError);
    return;
  }
  const Restore restore;
  const Tensor a = random_tensor({130, 150}, 1), b = random_tensor({150, 170}, 2), bt = random_tensor({170, 150}, 3),
               c = random_tensor({130, 170}, 4), big = random_tensor({130, 400}, 5);
  const auto all = [&] {
    std::vector<Tensor> out;
    for (const Real beta : {Real{0}, Real{1}, Real{2}}) {
      for (int i = 0; i < 4; ++i) out.push_back(c.clone());
      blas::multiply(out[out.size() - 4].matrix(), a.matrix(), b.matrix(), beta);
      blas::multiply_bt(out[out.size() - 3].matrix(), a.matrix(), bt.matrix(), beta);
      blas::multiply_bt(out[out.size() - 2].matrix(), big.matrix().columns(20, 170), bt.matrix(), beta, Real(0.5));
      out.push_back(random_tensor({150, 170}, 6));
      blas::multiply_at(out.back().matrix(), a.matrix(), c.matrix(), beta);
      blas::multiply_bt(big.clone().matrix().columns(30, 200), a.matrix(), bt.matrix(), beta);
    }
    return out;
  };
  const auto wanted = all();
  blas::use(blas::Library::onednn);
  CHECK(blas::product_names().find("oneDNN") == 0);
  const auto got = all();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(relative_error(got[i], wanted[i]) < 1e-5);
  CHECK(relative_error(got[0], product(a, false, b, false)) < 1e-5);

  // Others of as many threads as are asked for now, not then.
  const int threads = omp_get_max_threads();
  for (const int n : {1, 3}) {
    omp_set_num_threads(n);
    const auto again = all();
    for (std::size_t i = 0; i < again.size(); ++i) CHECK(relative_error(again[i], wanted[i]) < 1e-5);
  }
  omp_set_num_threads(threads);
}

TEST_CASE("linear products: in bf16 the inputs are rounded, and nothing else") {
  if (!onednn::has_bf16()) {
    CHECK_THROWS_AS(set_linear_precision(Precision::bf16), UsageError);
    return;
  }
  const Restore restore;
  set_linear_precision(Precision::bf16);
  const Index n = 70, in = 90, out = 110;  // some hundred thousand multiply-adds
  const Tensor x = random_tensor({n, in}, 1), w = random_tensor({out, in}, 2), dy = random_tensor({n, out}, 3),
               bias = random_tensor({out}, 4);
  const Tensor y(Shape{n, out});
  const LinearInput input(x, out);
  REQUIRE(input.is_rounded());
  linear_product(y.matrix(), input, w.matrix(), nullptr);
  const Tensor wanted = product(rounded(x), false, rounded(w), true);
  CHECK(relative_error(y, wanted) < 1e-5);
  CHECK(relative_error(y, product(x, false, w, true)) > 1e-4);
  linear_product(y.matrix(), input, w.matrix(), bias.data());
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < out; ++c) wanted.matrix()(r, c) += bias.data()[c];
  CHECK(relative_error(y, wanted) < 1e-5);

  const Tensor dx = random_tensor({n, in}, 5), dw = random_tensor({out, in}, 6), dx_before = dx.clone();
  linear_gradients(GradientTarget{dx.matrix(), true}, GradientTarget{dw.matrix(), false}, dy.matrix(), input,
                   w.matrix());
  CHECK(relative_error(dx, product(rounded(dy), false, rounded(w), false, dx_before)) < 1e-5);
  CHECK(relative_error(dw, product(rounded(dy), true, rounded(x), false)) < 1e-5);
}

TEST_CASE("linear products: a layer trains in bf16, and small ones stay in float") {
  if (!onednn::has_bf16()) return;
  const Restore restore;
  const auto gradients = [](Index rows) {
    const Var x = Var::leaf(random_tensor({rows, 96}, 1)), w = Var::leaf(random_tensor({80, 96}, 2)),
              b = Var::leaf(random_tensor({80}, 3));
    Tape tape(true);
    tape.backward(linear(tape, x, w, b), random_tensor({rows, 80}, 4));
    return std::vector<Tensor>{x.gradient()->sum(), w.gradient()->sum(), b.gradient()->sum()};
  };
  const auto exact = gradients(64), exact_small = gradients(2);
  set_linear_precision(Precision::bf16);
  const auto got = gradients(64), small = gradients(2);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(relative_error(got[i], exact[i]) < 1e-2);
    CHECK(relative_error(small[i], exact_small[i]) == 0);
  }
  CHECK(relative_error(got[1], exact[1]) > 1e-4);
}
#else
TEST_CASE("linear products: there is no bf16 in double") {
  CHECK_THROWS_AS(set_linear_precision(Precision::bf16), UsageError);
  const Tensor x = random_tensor({64, 90}, 1), w = random_tensor({80, 90}, 2), y(Shape{64, 80});
  linear_product(y.matrix(), LinearInput(x, 80), w.matrix(), nullptr);
  CHECK(relative_error(y, product(x, false, w, true)) < 1e-14);
}
#endif

}  // namespace
}  // namespace quipu
