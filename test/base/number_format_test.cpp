#include "base/number_format.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace quipu {
namespace {

std::vector<float> normal_row(std::size_t count, double deviation, std::uint64_t seed) {
  const Rng rng(seed, 0, 0);
  std::vector<float> row(count);
  for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<float>(deviation * rng.normal(i));
  return row;
}

std::vector<float> round_trip(NumberFormat format, const std::vector<float>& row) {
  std::vector<std::byte> stored(static_cast<std::size_t>(row_bytes(format, static_cast<Index>(row.size()))));
  std::vector<float> back(row.size());
  encode_row(format, row, stored);
  decode_row(format, stored, back);
  return back;
}

/// Root mean square of the error over that of the row.
double relative_error(NumberFormat format, const std::vector<float>& row) {
  const std::vector<float> back = round_trip(format, row);
  double error = 0, all = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    error += std::pow(static_cast<double>(back[i]) - row[i], 2);
    all += std::pow(static_cast<double>(row[i]), 2);
  }
  return std::sqrt(error / all);
}

}  // namespace

TEST_CASE("number format: half precision there and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    REQUIRE(half_of_float(value) == bits);
  }
  CHECK(half_to_float(0x3c00) == 1);
  CHECK(half_to_float(0x7bff) == 65504);
  CHECK(half_to_float(0x0001) == 0x1p-24F);
  CHECK(half_of_float(65519.0F) == 0x7bff);
  CHECK(std::isinf(half_to_float(half_of_float(65520.0F))));
  CHECK(half_of_float(1 + 0x1p-11F) == 0x3c00);  // a tie goes to the even one
  CHECK(half_of_float(1 + 3 * 0x1p-11F) == 0x3c02);
  CHECK(std::isnan(half_to_float(half_of_float(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("number format: names and sizes of rows") {
  for (const NumberFormat format : kNumberFormats) CHECK(parse_number_format(format_name(format)) == format);
  CHECK_THROWS_WITH_AS(parse_number_format("q5"), "number format q5: is unknown; there are f32, bf16, q8, q4",
                       UsageError);
  CHECK(row_bytes(NumberFormat::f32, 768) == 3072);
  CHECK(row_bytes(NumberFormat::bf16, 7) == 14);
  CHECK(row_bytes(NumberFormat::q8, 768) == 816);
  CHECK(row_bytes(NumberFormat::q4, 768) == 480);
  CHECK(row_bytes(NumberFormat::q8, 33) == 2 * 34);
  CHECK(row_bytes(NumberFormat::q4, 33) == 80);
}

TEST_CASE("number format: numbers come back within the stated bounds") {
  for (const std::size_t size : {1u, 31u, 32u, 45u, 128u, 333u}) {
    for (const double deviation : {1e-9, 1e-5, 0.02, 1.0, 300.0}) {
      CAPTURE(size);
      CAPTURE(deviation);
      const std::vector<float> row = normal_row(size, deviation, size);
      const auto bf16 = round_trip(NumberFormat::bf16, row), q8 = round_trip(NumberFormat::q8, row),
                 q4 = round_trip(NumberFormat::q4, row);
      for (std::size_t block = 0; block < size; block += 32) {
        const std::size_t end = std::min(size, block + 32);
        float largest = 0, low = end - block < 32 ? 0 : row[block], high = low;  // the padding is zeros
        for (std::size_t i = block; i < end; ++i) {
          largest = std::max(largest, std::abs(row[i]));
          low = std::min(low, row[i]), high = std::max(high, row[i]);
        }
        double squares = 0;
        for (std::size_t i = block; i < end; ++i) {
          REQUIRE(std::abs(bf16[i] - row[i]) <= std::abs(row[i]) * 0x1p-8F);
          REQUIRE(std::abs(q8[i] - row[i]) <= (largest / 126.8F + 0x1p-24F) * 0.5001F);
          squares += std::pow(static_cast<double>(q4[i]) - row[i], 2);
        }
        REQUIRE(std::sqrt(squares / 32) <= (high - low) / 29 + 0x1p-24 * 15);
      }
    }
  }
}

TEST_CASE("number format: error of normally distributed weights") {
  const std::vector<float> row = normal_row(64 * 128, 0.03, 5);
  const double bf16 = relative_error(NumberFormat::bf16, row), q8 = relative_error(NumberFormat::q8, row),
               q4 = relative_error(NumberFormat::q4, row);
  MESSAGE("relative error: bf16 ", bf16, ", q8 ", q8, ", q4 ", q4);
  CHECK(bf16 < 0.0018);
  CHECK(q8 < 0.0060);
  CHECK(q4 < 0.080);
}

TEST_CASE("number format: what has no room is refused, constants are kept") {
  std::vector<float> row(40, 0.25F);
  for (const NumberFormat format : kNumberFormats)
    for (const float x : round_trip(format, row)) CHECK(x == doctest::Approx(0.25).epsilon(0.002));
  row[33] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(round_trip(NumberFormat::q8, row), NumericError);
  CHECK_THROWS_AS(round_trip(NumberFormat::q4, row), NumericError);
  row[33] = 1e30F;
  CHECK_THROWS_AS(round_trip(NumberFormat::q8, row), NumericError);
  CHECK_THROWS_AS(round_trip(NumberFormat::q4, row), NumericError);
}

}  // namespace quipu
