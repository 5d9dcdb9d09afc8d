#pragma once
#include <span>

#include "store/profile_file.h"

namespace quipu {

/// How a quantity behaves from the shortest to the longest length.
enum class Trend { one_length, flat, grows, falls };

/// What one mixer's rows come to. Rows without a measurement do not count.
struct Verdict {
  Index from = 0, to = 0;  ///< lengths; 0: nothing was measured
  bool constant_state = true;
  Index state_bytes_from = 0, state_bytes_to = 0;
  Trend time = Trend::one_length;
  double time_ratio = 1;  ///< of seconds per token, at `to` over `from`
};

/// Times within a quarter of one another are flat: less than that lies in how a machine is used by others.
inline constexpr double kFlat = 1.25;

/// Of rows of one mixer, mode and number of threads, by ascending length.
Verdict verdict_of(std::span<const ProfileRow> rows);

}  // namespace quipu
