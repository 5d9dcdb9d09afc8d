#pragma once
#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a diagonal scan reads.
struct DiagonalScanInput {
  Var u{};      ///< [B,T,C]
  Var delta{};  ///< step sizes >= 0, [B,T,C]
  Var a{};      ///< rates <= 0, [C,N]
  Var b{};      ///< [B,T,N]
  Var c{};      ///< [B,T,N]
  Var skip{};   ///< D, [C]; undefined: zero
  Var state{};  ///< h before the first token, [B,C,N]; undefined: zero
};

struct DiagonalScanOutput {
  Var y;      ///< [B,T,C]; zero on padding
  Var state;  ///< h after the last token, [B,C,N]
};

/// The selective scan: every channel has N numbers of state, each with a decay of its own, and shares B_t and C_t:
///   h_t = e^{delta_t A} h_{t-1} + delta_t u_t B_t,   y_t = h_t C_t + D u_t.
/// Keeps h every kDiagonalChunk tokens and recomputes it in between in backward. The state starts anew at a document
/// start; padding is never read. Throws ShapeError where the inputs disagree. Source: arXiv:2312.00752, section 3.
DiagonalScanOutput diagonal_scan(Tape& tape, const DiagonalScanInput& input, const Layout& layout);

inline constexpr Index kDiagonalChunk = 64;

/// One token of the same.  u, delta, y: [B,C], y may be u or delta;  b, c: [B,N];  a [C,N], skip [C];  state [B,C,N] in
/// place.
void diagonal_scan_step(Matrix y, Matrix u, Matrix delta, const Real* a, Matrix b, Matrix c, const Real* skip,
                        Tensor& state);

}  // namespace quipu::inline QUIPU_REAL_NS
