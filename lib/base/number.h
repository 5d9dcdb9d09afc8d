#pragma once
#include <limits>
#include <string>
#include <string_view>

#include "base/real.h"

namespace quipu {

/// The one parser of numbers that users write, on the command line, in a configuration file or in `KEY=VALUE`.
/// Decimal always: 010 is ten. `1e6`, `1.5k`, `64k`, `2M`, `3G`, `1T` count in thousands; `64Ki`, `2Mi`, `1Gi`, `1Ti`
/// in powers of 1024. `where` opens the message, as in `--steps: -5 is below 1; give 1 or more`. All throw UsageError.

inline constexpr Index kMaxCount = std::numeric_limits<Index>::max();

/// A whole number in min .. max; never wraps around and never drops a fraction.
Index parse_integer(std::string_view where, std::string_view text, Index min, Index max);

/// What a real number may be. An open end excludes its bound.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;
  bool open_max = false;

  bool contains(double value) const;
  /// "0 or more", "above 0", "from 0 to 1", "from 0 to below 1", ...
  std::string text() const;
};
constexpr Bounds any_real() { return {}; }
constexpr Bounds at_least(double min) { return {.min = min}; }
constexpr Bounds above(double min) { return {.min = min, .open_min = true}; }
constexpr Bounds between(double min, double max) { return {.min = min, .max = max}; }
/// min <= value < max, as for a dropout rate.
constexpr Bounds from_below(double min, double max) { return {.min = min, .max = max, .open_max = true}; }
/// min < value <= max, as for a probability mass that is kept.
constexpr Bounds above_to(double min, double max) { return {.min = min, .max = max, .open_min = true}; }

/// A finite real number within bounds; no hexadecimal, no "inf", no "nan".
double parse_real(std::string_view where, std::string_view text, const Bounds& bounds);

/// Seconds of a duration such as `1h30m`, `90s`, `45m`, `1.5h`, `2d`; above zero. A number without a unit is refused,
/// because schedulers count in minutes and people in seconds.
double parse_duration(std::string_view where, std::string_view text);

/// true, yes, on, 1; false, no, off, 0.
bool parse_boolean(std::string_view where, std::string_view text);

}  // namespace quipu
