#pragma once
#include <algorithm>
#include <cmath>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// How the sum of a kernel attention's weights becomes what it divides by: d + eps, then at least `least`.
struct Divisor {
  enum class Bound {
    value,      ///< max(d, least)
    magnitude,  ///< max(|d|, least)
    signed_,    ///< d's sign times max(|d|, least)
  };
  double eps = 0;
  double least = 0;  ///< 0: no bound
  Bound bound = Bound::value;

  Real operator()(Real d) const {
    d += static_cast<Real>(eps);
    if (least == 0) return d;
    const Real size = std::max(bound == Bound::value ? d : std::abs(d), static_cast<Real>(least));
    return bound == Bound::signed_ && std::signbit(d) ? -size : size;
  }
  /// Its derivative; 0 where the bound holds.
  Real slope(Real d) const {
    d += static_cast<Real>(eps);
    if (least == 0) return 1;
    if ((bound == Bound::value ? d : std::abs(d)) < static_cast<Real>(least)) return 0;
    return bound == Bound::magnitude && d < 0 ? Real{-1} : Real{1};
  }
};

/// y = x / divisor(d), one d a row.  x: [..,V];  d: [..];  y: [..,V]. The normalisation of kernel attention.
Var quotient(Tape& tape, const Var& x, const Var& d, const Divisor& divisor);
inline Var quotient(Tape& tape, const Var& x, const Var& d, double eps) { return quotient(tape, x, d, Divisor{eps}); }

}  // namespace quipu::inline QUIPU_REAL_NS
