#pragma once
#include <span>
#include <string>

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

/// "state constant: yes (262,144 bytes)", "state constant: no (65,544 bytes at 128, 67,108,872 at 131,072)".
std::string state_verdict(const Verdict& verdict);
/// "time per token: flat from 128 to 131,072 (x1.02)", "time per token: grows with length (x31 from 128 to 131,072)".
std::string time_verdict(const Verdict& verdict);

}  // namespace quipu
