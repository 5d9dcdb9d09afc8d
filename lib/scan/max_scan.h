#pragma once
#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// The maximum of nothing: finite, so that it can be stored, and below every other.
inline constexpr Real kNoMaximum = static_cast<Real>(-1e30);

struct MaxScanOutput {
  Var features;   ///< e^{u_t - m_t}, [B,T,H,M]: at most 1
  Var log_decay;  ///< m_{t-1} - m_t <= 0, [B,T,H]; 0 at a first token
  Var state;      ///< m after the last token, [B,H]
};

/// Positive features relative to the largest exponent so far:  m_t = max(m_{t-1}, max_j u_t[j]), head by head. Sums of
/// e^{u_t - m_t} that decay by e^{m_{t-1} - m_t} are sums of e^{u_t}, times e^{-m_t}, and never overflow.
/// exponents u: [B,T,H,M];  state m: [B,H], kNoMaximum where nothing was read yet; undefined: nowhere. Documents start
/// with nothing; padding is never read, and its outputs are 0. Throws ShapeError where the two disagree.
MaxScanOutput max_scan(Tape& tape, const Var& exponents, const Var& state, const Layout& layout);

/// One token of one head: features written (may be u), m in place; returns the log decay.
Real max_scan_step(Real* features, const Real* exponents, Real* state, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS
