#pragma once
#include <span>

#include "base/real.h"

namespace quipu {

/// A median and its quartiles.
struct Spread {
  double low = 0, median = 0, high = 0;
  Index count = 0;  ///< of values

  Spread scaled(double factor) const { return {low * factor, median * factor, high * factor, count}; }
};

/// Quartiles between values are interpolated; of one value all three are that value. Throws InternalError for none.
Spread spread_of(std::span<const double> values);

/// Whether more repeats would hardly move the median: there are at least five values, and the distance of their
/// quartiles over the root of their number is at most 1 % of the median.
bool is_settled(const Spread& spread);

}  // namespace quipu
