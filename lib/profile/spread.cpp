#include "profile/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace quipu {
namespace {

constexpr Index kLeastRepeats = 5;
constexpr double kSettled = 0.01;

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  if (values.empty()) throw InternalError("spread: of {} values; at least {} is needed", 0, 1);
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75), std::ssize(sorted)};
}

bool is_settled(const Spread& s) {
  return s.count >= kLeastRepeats && s.high - s.low <= kSettled * s.median * std::sqrt(static_cast<double>(s.count));
}

}  // namespace quipu
