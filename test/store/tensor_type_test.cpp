#include "store/tensor_type.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/foreign_bytes.h"

using namespace quipu;
using quipu_test::bytes_of;

namespace {

std::vector<float> decoded(TensorType type, const std::string& bytes, std::size_t numbers) {
  std::vector<float> values(numbers);
  decode_floats(type, std::as_bytes(std::span(bytes)), values);
  return values;
}

/// The definition of a half-precision number.
float half_by_definition(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const auto fraction = static_cast<float>(bits & 1023U);
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// A block of 32 small numbers, laid out by the definition of ggml's formats, from the numbers themselves.
std::string packed(const std::vector<int>& q, bool fifth_bits) {
  std::uint32_t fifth = 0;
  std::string halves;
  for (std::size_t j = 0; j < 16; ++j) halves += static_cast<char>((q[j] & 15) | (q[j + 16] & 15) << 4);
  for (std::size_t j = 0; j < 32; ++j) fifth |= static_cast<std::uint32_t>(q[j] >> 4 & 1) << j;
  return (fifth_bits ? bytes_of(fifth) : "") + halves;
}

constexpr std::uint16_t kScale = 0x3555;    // 0.333251953125
constexpr std::uint16_t kMinimum = 0xb800;  // -0.5

}  // namespace

TEST_CASE("every half-precision number is the float of its definition") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_half(static_cast<std::uint16_t>(bits));
    const float wanted = half_by_definition(bits);
    if (std::isnan(wanted) ? !std::isnan(value) : std::memcmp(&value, &wanted, sizeof value) != 0) FAIL(bits);
  }
}

TEST_CASE("plain numbers become floats") {
  CHECK(decoded(TensorType::kF64, bytes_of<double>({0.1, -1e300}), 2) == std::vector<float>{0.1F, -INFINITY});
  CHECK(decoded(TensorType::kU64, bytes_of<std::uint64_t>({~std::uint64_t{0}}), 1) == std::vector<float>{0x1p64F});
  CHECK(decoded(TensorType::kI8, "\x80\x7f", 2) == std::vector<float>{-128, 127});
  CHECK(decoded(TensorType::kBool, std::string("\0\x02", 2), 2) == std::vector<float>{0, 1});
  CHECK(decoded(TensorType::kBF16, bytes_of<std::uint16_t>({0x4049}), 1) == std::vector<float>{3.140625F});
  CHECK_THROWS_AS(decoded(TensorType::kF32, "12345", 1), InternalError);
  CHECK_THROWS_AS(decoded(TensorType::kQ8_0, std::string(34, '\0'), 31), InternalError);
}

TEST_CASE("quantised blocks are expanded as they are defined") {
  const float d = half_by_definition(kScale);
  const float m = half_by_definition(kMinimum);
  std::vector<int> q4(32), q5(32), q8(32);
  for (std::size_t j = 0; j < 32; ++j) {
    q4[j] = static_cast<int>(j * 7 % 16);
    q5[j] = static_cast<int>(j * 11 % 32);
    q8[j] = static_cast<int>(j * 37 % 255) - 127;
  }
  const std::string scale = bytes_of(kScale);
  const std::string both = scale + bytes_of(kMinimum);
  std::string signed_bytes;
  for (const int q : q8) signed_bytes += static_cast<char>(q);
  // Two blocks, the first all zero numbers, so that a wrong step between blocks shows.
  const auto second = [](TensorType type, const std::string& block) {
    const auto all = decoded(type, std::string(block.size(), '\0') + block, 64);
    return std::vector<float>(all.begin() + 32, all.end());
  };
  const auto q4_0 = second(TensorType::kQ4_0, scale + packed(q4, false));
  const auto q4_1 = second(TensorType::kQ4_1, both + packed(q4, false));
  const auto q5_0 = second(TensorType::kQ5_0, scale + packed(q5, true));
  const auto q5_1 = second(TensorType::kQ5_1, both + packed(q5, true));
  const auto q8_0 = second(TensorType::kQ8_0, scale + signed_bytes);
  for (std::size_t j = 0; j < 32; ++j) {
    CHECK(q4_0[j] == static_cast<float>(q4[j] - 8) * d);
    CHECK(q4_1[j] == static_cast<float>(q4[j]) * d + m);
    CHECK(q5_0[j] == static_cast<float>(q5[j] - 16) * d);
    CHECK(q5_1[j] == static_cast<float>(q5[j]) * d + m);
    CHECK(q8_0[j] == static_cast<float>(q8[j]) * d);
  }
}
