#pragma once
#include <cstddef>

namespace quipu {

/// Memory of this process as the system sees it, in bytes; 0 where it does not say.
std::size_t resident_now();
/// The most that was resident since the start or the last `forget_peak`.
std::size_t resident_peak();
/// Lets the peak start anew from what is resident now, where the system can.
void forget_peak();
/// What this process may take beyond what it has: free memory, within its control group's limit.
std::size_t memory_left();
/// From here on an allocation beyond `bytes` more fails as it would where the machine has no more, and before its other
/// processes are in need.
void limit_memory(std::size_t bytes);

}  // namespace quipu
