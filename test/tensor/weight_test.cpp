#include "tensor/weight.h"

#include <doctest/doctest.h>
#include <hwy/targets.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <string>

#include "tensor/number_formats.h"
#include "tolerance.h"

namespace quipu {
namespace {

struct Product {
  Index out, in, n;
  std::vector<Real> x, bias;
  std::vector<float> w;
};

Product product_of(const PackedMatrix& packed, Index n) {
  Product p{packed.rows(), packed.cols(), n, {}, {}, {}};
  const auto x = quipu_test::normal_floats(n * p.in, 3), bias = quipu_test::normal_floats(p.out, 4);
  p.x.assign(x.begin(), x.end());
  p.bias.assign(bias.begin(), bias.end());
  p.w.resize(static_cast<std::size_t>(p.out * p.in));
  packed.decode(p.w);
  return p;
}

std::vector<Real> multiply(const Product& p, const Weight& weight, bool with_bias) {
  std::vector<Real> y(static_cast<std::size_t>(p.n * p.out), std::numeric_limits<Real>::quiet_NaN());
  multiply_weight({y.data(), p.n, p.out, p.out}, {const_cast<Real*>(p.x.data()), p.n, p.in, p.in}, weight,
                  with_bias ? p.bias.data() : nullptr);
  return y;
}

/// The largest difference from sums in double over the expanded numbers, over |w_r| |x|.
double worst(const Product& p, const std::vector<Real>& y, bool with_bias) {
  double most = 0;
  for (Index n = 0; n < p.n; ++n)
    for (Index r = 0; r < p.out; ++r) {
      double sum = with_bias ? static_cast<double>(p.bias[static_cast<std::size_t>(r)]) : 0, ww = 0, xx = 0;
      for (Index i = 0; i < p.in; ++i) {
        const double w = p.w[static_cast<std::size_t>(r * p.in + i)], x = p.x[static_cast<std::size_t>(n * p.in + i)];
        sum += w * x, ww += w * w, xx += x * x;
      }
      const double got = static_cast<double>(y[static_cast<std::size_t>(n * p.out + r)]);
      REQUIRE(std::isfinite(got));
      most = std::max(most, std::abs(got - sum) / std::sqrt(ww * xx));
    }
  return most;
}

void use_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

TEST_CASE("weight: products agree with the expanded numbers, on every instruction set") {
  int compared = 0;
  for (const std::int64_t target :
       {std::int64_t{0}, std::int64_t{HWY_SCALAR}, std::int64_t{HWY_EMU128}, std::int64_t{HWY_SSE4},
        std::int64_t{HWY_AVX2}, std::int64_t{HWY_AVX3}, std::int64_t{HWY_AVX3_DL}}) {
    if (target != 0 && (hwy::SupportedTargets() & target) == 0) continue;
    CAPTURE(std::string(hwy::TargetName(target)));
    use_targets(target);
    for (const NumberFormat format : quipu_test::kPackedFormats)
      for (const auto& [out, in] : {std::pair<Index, Index>{1, 1}, {5, 33}, {3, 31}, {7, 200}, {19, 67}, {2, 2300}})
        for (const Index n : {Index{1}, Index{3}, Index{6}}) {
          CAPTURE(format_name(format));
          CAPTURE(out);
          CAPTURE(in);
          CAPTURE(n);
          const PackedMatrix packed = quipu_test::random_packed(format, out, in);
          const Product p = product_of(packed, n);
          const double tolerance = kIsDouble ? 1e-12 : n > 4 || format == NumberFormat::bf16 ? 1e-6 : 3e-5;
          for (const bool with_bias : {false, true})
            CHECK(worst(p, multiply(p, packed, with_bias), with_bias) < tolerance);
          ++compared;
        }
    use_targets(0);
  }
  CHECK(compared >= 3 * 54);
}

TEST_CASE("weight: floats, a few rows or many, and slices of rows") {
  for (const Index n : {Index{1}, Index{4}, Index{5}}) {
    const PackedMatrix packed = quipu_test::random_packed(NumberFormat::bf16, 11, 37);
    const Product p = product_of(packed, n);
    Tensor floats({11, 37});
    std::copy(p.w.begin(), p.w.end(), floats.data());
    CHECK(worst(p, multiply(p, floats, true), true) < (kIsDouble ? 1e-14 : 1e-6));
    const Weight part = Weight(packed).rows(3, 8), same = Weight(floats).rows(3, 8);
    CHECK(part.out() == 5);
    Product q = p;
    q.out = 5;
    const auto a = multiply(q, part, false), b = multiply(q, same, false);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(static_cast<double>(b[i])).epsilon(1e-5));
  }
  const PackedMatrix packed = quipu_test::random_packed(NumberFormat::q8, 4, 40);
  std::vector<Real> y(4), x(39);
  CHECK_THROWS_WITH_AS(multiply_weight({y.data(), 1, 4, 4}, {x.data(), 1, 39, 39}, packed, nullptr),
                       "linear: input width 39 and output width 4 for a weight of shape [4, 40]", ShapeError);
}

TEST_CASE("weight: results do not depend on the number of threads; what is not finite stays so") {
  const int threads = omp_get_max_threads();
  for (const NumberFormat format : quipu_test::kPackedFormats) {
    const PackedMatrix packed = quipu_test::random_packed(format, 1500, 1000);
    Product p = product_of(packed, 1);
    omp_set_num_threads(1);
    const auto one = multiply(p, packed, true);
    omp_set_num_threads(3);
    CHECK(multiply(p, packed, true) == one);
    const Product many = product_of(packed, 17);
    const auto panels = multiply(many, packed, true);
    CHECK(worst(many, panels, true) < (kIsDouble ? 1e-12 : 1e-6));
    omp_set_num_threads(1);
    CHECK(multiply(many, packed, true) == panels);
    p.x[777] = std::numeric_limits<Real>::quiet_NaN();
    CHECK(std::isnan(multiply(p, packed, false)[1499]));
  }
  omp_set_num_threads(threads);
}

}  // namespace quipu
