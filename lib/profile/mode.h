#pragma once
#include <array>
#include <string>

#include "base/error.h"

namespace quipu {

/// What is done with a sequence of n tokens: one more is drawn after it, it is read, or it is trained on.
enum class ProfileMode { decode, prefill, train };

inline constexpr std::array<const char*, 3> kModeNames{"decode", "prefill", "train"};

inline const char* mode_name(ProfileMode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

/// Throws UsageError with the names that exist.
inline ProfileMode mode_from_name(const std::string& name) {
  for (std::size_t i = 0; i < kModeNames.size(); ++i)
    if (name == kModeNames[i]) return static_cast<ProfileMode>(i);
  throw UsageError("--mode {}: is unknown; there are decode, prefill, train", name);
}

}  // namespace quipu
