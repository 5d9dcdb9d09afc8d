#pragma once
#include <cstdint>

/// The arithmetic type of the models. The library is built twice from the same sources: with `float` for the tools
/// and with `double` for the tests, where gradients can then be checked to 1e-6 and golden files to 1e-10. Everything
/// whose meaning depends on `Real` stands in the inline namespace QUIPU_REAL_NS, so that the two builds never mix:
///
///     namespace quipu::inline QUIPU_REAL_NS { ... }
#ifdef QUIPU_DOUBLE
#define QUIPU_REAL_NS f64
#else
#define QUIPU_REAL_NS f32
#endif

namespace quipu {

inline namespace QUIPU_REAL_NS {
#ifdef QUIPU_DOUBLE
using Real = double;
#else
using Real = float;
#endif
}  // namespace QUIPU_REAL_NS

/// Sizes, counts and positions: signed, 64 bits.
using Index = std::int64_t;

}  // namespace quipu
