#pragma once
#include <string>

#include "base/real.h"

namespace quipu {

/// Numbers for people. For machines there is JSON.

/// "0", "999", "1.2 k", "1.2 M", "3.4 G": three figures at most, in thousands.
std::string human_count(double count);
/// "512 B", "3.4 GB", in thousands like disks and the units of --lengths.
std::string human_bytes(double bytes);
/// "120 us", "520 ms", "12.3 s", "1 min 29 s", "1 h 02 min", "2 d 03 h".
std::string human_duration(double seconds);
/// "1,234,567".
std::string grouped(Index number);

}  // namespace quipu
