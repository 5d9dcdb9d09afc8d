#include "base/number.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"

using namespace quipu;

namespace {

template <typename Parse>
std::string refusal(const Parse& parse) {
  try {
    parse();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

Index whole(const std::string& text) { return parse_integer("--n", text, -kMaxCount, kMaxCount); }
double real(const std::string& text) { return parse_real("--x", text, any_real()); }

}  // namespace

TEST_CASE("number: whole numbers are exact, decimal, and take units") {
  CHECK(whole("0") == 0);
  CHECK(whole("-0") == 0);
  CHECK(whole("010") == 10);
  CHECK(whole("+7") == 7);
  CHECK(whole("-12") == -12);
  CHECK(whole("1e6") == 1000000);
  CHECK(whole("1E3") == 1000);
}

TEST_CASE("number: units and exponents of whole numbers") {
  CHECK(whole("1.5e1") == 15);
  CHECK(whole("250e-1") == 25);
  CHECK(whole("64k") == 64000);
  CHECK(whole("64K") == 64000);
  CHECK(whole("2M") == 2000000);
  CHECK(whole("1.5k") == 1500);
  CHECK(whole("3G") == 3000000000);
  CHECK(whole("64Ki") == 65536);
  CHECK(whole("1.5Ki") == 1536);
  CHECK(whole("1Ti") == 1099511627776);
  CHECK(whole("9223372036854775807") == kMaxCount);
  CHECK(whole("9007199254740993") == 9007199254740993);  // a double would lose the last figure
  CHECK(whole("0e99999") == 0);
  CHECK(whole("0.000") == 0);
}

TEST_CASE("number: whole numbers that are refused, and why") {
  const auto check = [](const std::string& text, const std::string& message) {
    INFO(text);
    CHECK(refusal([&] { parse_integer("--n", text, 1, 100); }) == "--n: " + message);
  };
  const std::string range = "give a whole number from 1 to 100";
  for (const char* text : {"",   "-",   "+",  ".",    "e5", "1e",  "1e+", "0x10",  "1_000", "1,000", " 5",
                           "5 ", "5kk", "5m", "1e3k", "k",  "nan", "inf", "1e5.5", "--5",   "5Kib",  "\xC2\xB2"}) {
    check(text, fmt::format("\"{}\" is not a number; {}", text, range));
  }
  check("0", "0 is below 1; " + range);
  check("-1", "-1 is below 1; " + range);
  check("101", "101 is above 100; " + range);
  check("1k", "1k is above 100; " + range);
  check("2.5", "2.5 is not a whole number; " + range);
  check("1e-3", "1e-3 is not a whole number; " + range);
  check("0.0001k", "0.0001k is not a whole number; " + range);
  check("18446744073709551617", "18446744073709551617 is above 100; " + range);  // 2^64 + 1 does not wrap to 1
  check("-18446744073709551615", "-18446744073709551615 is below 1; " + range);
  check("1e99999999999999999999", "1e99999999999999999999 is above 100; " + range);
  check("99999999999999999999999999999999999999999999",
        "99999999999999999999999999999999999999999999 is above 100; " + range);
  CHECK(refusal([] { parse_integer("--n", "-9223372036854775808", -kMaxCount, 3); }).find("is below") !=
        std::string::npos);
  CHECK(refusal([] { parse_integer("--n", "0", 1, kMaxCount); }) == "--n: 0 is below 1; give 1 or more");
}

TEST_CASE("number: real numbers") {
  CHECK(real("0.1") == 0.1);
  CHECK(real("-.5") == -0.5);
  CHECK(real("5.") == 5);
  CHECK(real("1e-3") == 1e-3);
  CHECK(real("2.5k") == 2500);
  CHECK(real("0.5Ki") == 512);
  CHECK(real("0010") == 10);
  CHECK(real("1.7976931348623157e308") == 1.7976931348623157e308);
  CHECK(real("0e400") == 0);
  for (const char* text : {"", "nan", "inf", "-inf", "0x1p3", "1e", "1d3", "1,5", "1.2.3"}) {
    INFO(text);
    CHECK(refusal([&] { real(text); }) == fmt::format("--x: \"{}\" is not a number; give a real number", text));
  }
  CHECK(refusal([] { real("1e400"); }) == "--x: 1e400 is outside the range of real numbers; give a real number");
  CHECK(refusal([] { real("1e-400"); }) == "--x: 1e-400 is outside the range of real numbers; give a real number");
}

TEST_CASE("number: bounds of real numbers") {
  const auto check = [](const std::string& text, const Bounds& bounds, const std::string& message) {
    CHECK(refusal([&] { parse_real("--x", text, bounds); }) == message);
  };
  check("0", above(0), "--x: 0 is not above 0; give above 0");
  check("-1", at_least(0), "--x: -1 is below 0; give 0 or more");
  check("0", at_least(0), "none");
  check("1", between(0, 1), "none");
  check("1.5", between(0, 1), "--x: 1.5 is above 1; give from 0 to 1");
  check("1", from_below(0, 1), "--x: 1 is not below 1; give from 0 to below 1");
  check("0", from_below(0, 1), "none");
  check("0", above_to(0, 1), "--x: 0 is not above 0; give above 0 to 1");
  check("1", above_to(0, 1), "none");
}

TEST_CASE("number: durations") {
  CHECK(parse_duration("--t", "1h30m") == 5400);
  CHECK(parse_duration("--t", "90s") == 90);
  CHECK(parse_duration("--t", "1.5h") == 5400);
  CHECK(parse_duration("--t", "1d2h3m4.5s") == 93784.5);
  for (const char* text : {"", "90", "1h30", "30m1h", "1h1h", "h", "-5s", "1e3s", "1.2.3s", "0s", "5x", "5 s"}) {
    INFO(text);
    CHECK(refusal([&] { parse_duration("--t", text); }).find("write a duration such as 1h30m") != std::string::npos);
  }
}

TEST_CASE("number: truth") {
  for (const char* text : {"true", "yes", "on", "1"}) CHECK(parse_boolean("x", text));
  for (const char* text : {"false", "no", "off", "0"}) CHECK_FALSE(parse_boolean("x", text));
  CHECK(refusal([] { parse_boolean("x", "maybe"); }) == "x: \"maybe\" is neither true nor false; give true or false");
}
