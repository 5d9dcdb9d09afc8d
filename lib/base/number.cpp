#include "base/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace quipu {
namespace {

__extension__ using Wide = unsigned __int128;

/// A number as written: digits * 10^exponent * factor. `digits` has no leading and no trailing zeros.
struct Decimal {
  bool negative = false;
  std::string digits;
  Index exponent = 0;
  std::uint64_t factor = 1;
};

constexpr std::size_t kMaxDigits = 25;  // 10^25 * 2^40 stays below 2^128

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads a suffix; returns false where it is unknown.
bool read_suffix(std::string_view suffix, Decimal& number) {
  if (suffix.empty()) return true;
  constexpr std::string_view kLetters = "kMGT";
  const char letter = suffix[0] == 'K' ? 'k' : suffix[0];
  const std::size_t power = kLetters.find(letter);
  if (power == std::string_view::npos) return false;
  if (suffix.size() == 1) {
    number.exponent += 3 * static_cast<Index>(power + 1);
    return true;
  }
  number.factor = std::uint64_t{1} << (10 * (power + 1));
  return suffix.substr(1) == "i";
}

void trim_zeros(Decimal& number) {
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  while (!number.digits.empty() && number.digits.back() == '0') {
    number.digits.pop_back();
    ++number.exponent;
  }
}

/// Reads `e+5`; returns what is left, or nothing where the exponent is broken.
std::optional<std::string_view> read_exponent(std::string_view text, Decimal& number) {
  std::size_t at = 1;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  const std::size_t first = at;
  Index exponent = 0;
  for (; at < text.size() && is_digit(text[at]); ++at)
    exponent = std::min<Index>(exponent * 10 + (text[at] - '0'), 99999);
  if (at == first) return std::nullopt;
  number.exponent += text[1] == '-' ? -exponent : exponent;
  return text.substr(at);
}

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) number.digits += text[at++];
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]); ++at, --number.exponent) number.digits += text[at];
  }
  if (number.digits.empty()) return std::nullopt;
  text.remove_prefix(at);
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    const auto rest = read_exponent(text, number);
    if (!rest || !rest->empty()) return std::nullopt;
  } else if (!read_suffix(text, number)) {
    return std::nullopt;
  }
  trim_zeros(number);
  return number;
}

enum class Fit { kWhole, kFraction, kHuge };

/// The magnitude of a number, where it is whole and below 2^64.
Fit whole_magnitude(const Decimal& number, std::uint64_t& magnitude) {
  constexpr Wide kLimit = Wide{std::numeric_limits<std::uint64_t>::max()};
  magnitude = 0;
  if (number.digits.empty()) return Fit::kWhole;
  if (number.digits.size() > kMaxDigits) return number.exponent < 0 ? Fit::kFraction : Fit::kHuge;
  Wide value = 0;
  for (const char c : number.digits) value = value * 10 + static_cast<unsigned>(c - '0');
  value *= number.factor;
  for (Index i = number.exponent; i < 0; ++i) {
    if (value % 10 != 0) return Fit::kFraction;
    value /= 10;
  }
  for (Index i = 0; i < number.exponent; ++i) {
    if (value > kLimit) return Fit::kHuge;
    value *= 10;
  }
  if (value > kLimit) return Fit::kHuge;
  magnitude = static_cast<std::uint64_t>(value);
  return Fit::kWhole;
}

std::string integer_range(Index min, Index max) {
  if (max == kMaxCount) return fmt::format("give {} or more", min);
  return fmt::format("give a whole number from {} to {}", min, max);
}

}  // namespace

Index parse_integer(std::string_view where, std::string_view text, Index min, Index max) {
  const auto number = read_decimal(text);
  if (!number) throw UsageError("{}: \"{}\" is not a number; {}", where, text, integer_range(min, max));
  std::uint64_t magnitude = 0;
  const Fit fit = whole_magnitude(*number, magnitude);
  if (fit == Fit::kFraction) throw UsageError("{}: {} is not a whole number; {}", where, text, integer_range(min, max));
  constexpr auto kTop = static_cast<std::uint64_t>(kMaxCount);
  const bool too_big = fit == Fit::kHuge || magnitude > kTop;
  const Index value = too_big ? 0 : (number->negative ? -static_cast<Index>(magnitude) : static_cast<Index>(magnitude));
  if ((too_big && number->negative) || (!too_big && value < min)) {
    throw UsageError("{}: {} is below {}; {}", where, text, min, integer_range(min, max));
  }
  if (too_big || value > max) throw UsageError("{}: {} is above {}; {}", where, text, max, integer_range(min, max));
  return value;
}

bool Bounds::contains(double value) const {
  return (open_min ? value > min : value >= min) && (open_max ? value < max : value <= max);
}

std::string Bounds::text() const {
  const bool has_min = std::isfinite(min);
  const bool has_max = std::isfinite(max);
  if (has_min && has_max) {
    return fmt::format("{} {} {} {}", open_min ? "above" : "from", min, open_max ? "to below" : "to", max);
  }
  if (has_min) return open_min ? fmt::format("above {}", min) : fmt::format("{} or more", min);
  if (has_max) return open_max ? fmt::format("below {}", max) : fmt::format("{} or less", max);
  return "a real number";
}

double parse_real(std::string_view where, std::string_view text, const Bounds& bounds) {
  const auto number = read_decimal(text);
  if (!number) throw UsageError("{}: \"{}\" is not a number; give {}", where, text, bounds.text());
  double value = 0;
  if (!number->digits.empty()) {
    const std::string plain = fmt::format("{}e{}", number->digits, number->exponent);
    const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    value *= static_cast<double>(number->factor);
    if (result.ec != std::errc{} || !std::isfinite(value)) {
      throw UsageError("{}: {} is outside the range of real numbers; give {}", where, text, bounds.text());
    }
  }
  if (number->negative) value = -value;
  if (bounds.contains(value)) return value;
  const bool low = bounds.open_min ? value <= bounds.min : value < bounds.min;
  const bool open = low ? bounds.open_min : bounds.open_max;
  throw UsageError("{}: {} is {} {}; give {}", where, text,
                   open ? (low ? "not above" : "not below") : (low ? "below" : "above"), low ? bounds.min : bounds.max,
                   bounds.text());
}

double parse_duration(std::string_view where, std::string_view text) {
  constexpr std::string_view kUnits = "dhms";
  constexpr std::array<double, 4> kSeconds = {86400, 3600, 60, 1};
  const auto refuse = [&](std::string_view why) {
    return UsageError("{}: \"{}\" {}; write a duration such as 1h30m, 45m or 90s", where, text, why);
  };
  double seconds = 0;
  std::size_t next_unit = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = rest.find_first_not_of("0123456789.");
    if (length == std::string_view::npos) throw refuse("has a number without a unit");
    const std::size_t unit = kUnits.find(rest[length]);
    if (length == 0 || unit == std::string_view::npos || unit < next_unit) throw refuse("is not a duration");
    const auto number = read_decimal(rest.substr(0, length));
    if (!number) throw refuse("is not a duration");
    seconds += parse_real(where, rest.substr(0, length), at_least(0)) * kSeconds[unit];
    next_unit = unit + 1;
    rest.remove_prefix(length + 1);
  }
  if (!(seconds > 0)) throw refuse(text.empty() ? "is empty" : "is no time at all");
  return seconds;
}

bool parse_boolean(std::string_view where, std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (text == word) return false;
  }
  throw UsageError("{}: \"{}\" is neither true nor false; give true or false", where, text);
}

}  // namespace quipu
