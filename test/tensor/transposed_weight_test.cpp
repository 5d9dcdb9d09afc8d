#include "tensor/transposed_weight.h"

#include <doctest/doctest.h>

#include "compare.h"
#include "tensor/number_formats.h"

using namespace quipu;

namespace {

/// y = x W by the obvious sums, for one row beside another in rows of stride `in + 3`.
void check_product(const Weight& weight, const std::vector<float>& w) {
  const Index out = weight.out(), in = weight.in(), n = 3;
  const auto x = quipu_test::normal_floats(n * out, 3);
  std::vector<Real> from(x.begin(), x.end()), y(static_cast<std::size_t>(n * (in + 3)), Real{7});
  multiply_transposed({y.data(), n, in, in + 3}, {from.data(), n, out, out}, weight);
  std::vector<double> wanted;
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < in + 3; ++c) {
      double sum = c < in ? 0 : 7;  // what lies between the rows is left alone
      for (Index i = 0; i < out && c < in; ++i)
        sum += static_cast<double>(x[static_cast<std::size_t>(r * out + i)]) *
               static_cast<double>(w[static_cast<std::size_t>(i * in + c)]);
      wanted.push_back(sum);
    }
  CHECK(relative_error(y, wanted) < (kIsDouble ? 1e-13 : 1e-5));
}

}  // namespace

TEST_CASE("a weight, transposed, in any number format") {
  for (const Index out : {Index{5}, Index{64}, Index{130}}) {
    const Index in = 37;
    const auto w = quipu_test::normal_floats(out * in, 7);
    Tensor floats({out, in});
    std::copy(w.begin(), w.end(), floats.data());
    check_product(floats, w);
    for (const NumberFormat format : quipu_test::kPackedFormats) {
      const PackedMatrix packed = quipu_test::random_packed(format, out, in);
      std::vector<float> numbers(w.size());
      packed.decode(numbers);
      check_product(packed, numbers);
    }
  }
  Tensor weight = Tensor::zeros({4, 5}), x = Tensor::zeros({1, 5}), y = Tensor::zeros({1, 5});
  CHECK_THROWS_WITH_AS(multiply_transposed(y.matrix(), x.matrix(), weight), doctest::Contains("[4, 5]"), ShapeError);
}
