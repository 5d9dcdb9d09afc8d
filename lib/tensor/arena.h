#pragma once
#include <cstddef>

namespace quipu {

/// The one allocator of tensor storage. It takes large regions from the system, asks for huge pages, and keeps them:
/// a training step then finds the buffers of the step before, without page faults. Best fit with coalescing, so that
/// what it holds stays near the peak of what was in use at one time; large regions that are free go back where a still
/// larger one is needed, as by a cache that grows. Thread-safe.
namespace arena {

inline constexpr std::size_t kAlignment = 64;

/// 64-byte aligned storage of at least `bytes` bytes, contents undefined (NaN in debug builds).
/// Throws InputError with the sizes where the system has no more.
void* allocate(std::size_t bytes);
void release(void* block) noexcept;

struct Usage {
  std::size_t in_use;      ///< bytes handed out now
  std::size_t high_water;  ///< the largest `in_use` since the last reset
  std::size_t reserved;    ///< bytes taken from the system
};
Usage usage();
void reset_high_water();

}  // namespace arena
}  // namespace quipu
