#pragma once
#include "base/real.h"

/// What the tests allow, in one place. Errors are relative to the largest element of the reference.
namespace quipu::inline QUIPU_REAL_NS {

inline constexpr bool kIsDouble = sizeof(Real) == 8;

/// Against the golden files.
inline constexpr double kOutputTolerance = kIsDouble ? 1e-10 : 1e-5;
inline constexpr double kGradientTolerance = kIsDouble ? 1e-10 : 2e-4;
/// Of a tape's gradients against finite differences (see gradient_error); checked in double only.
inline constexpr double kDifferenceTolerance = 1e-6;

}  // namespace quipu::inline QUIPU_REAL_NS
