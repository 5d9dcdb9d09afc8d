#pragma once
#include "scan/outer_scan.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a delta scan reads. H heads have a state and values of their own; q, k, a and b stand in Hk heads, H = G Hk,
/// and state head h reads those of head h / G.
struct DeltaScanInput {
  Decay decay = Decay::none;  ///< none, scalar or key
  Var q{};                    ///< [B,T,Hk,K]
  Var k{};                    ///< [B,T,Hk,K]
  Var v{};                    ///< [B,T,H,V]
  Var beta{};                 ///< the delta rule's step, [B,T,H]; undefined: the general form
  Var erase{};                ///< e, what the general form reads with, [B,T,Hk,K]; undefined in the delta rule
  Var write{};                ///< b, where it takes that out, [B,T,Hk,K]; undefined in the delta rule
  Var log_decay{};            ///< g <= 0, [B,T,H] or [B,T,H,K]; undefined for `none`
  Var state{};                ///< S before the first token, [B,H,K,V]; undefined: zero
  Real scale = 1;             ///< of the queries
};

struct DeltaScanOutput {
  Var y;      ///< y_t = scale q_t S_t, [B,T,H,V]; zero on padding
  Var state;  ///< S after the last token, [B,H,K,V]
};

/// The scan of memories that correct what they hold, D_t = diag(e^{g_t}):
///   delta rule     S_t = (I - beta_t k_t k_t^T) D_t S_{t-1} + beta_t k_t v_t^T
///   general form   S_t = (D_t - b_t e_t^T) S_{t-1} + k_t v_t^T
/// in chunks of kDeltaChunk tokens: with W what the chunk's tokens write (beta (v - k D S), or -e S), all of them solve
/// one unit lower triangular system, and all else is matrix products. The state is kept at chunk starts, the rest
/// recomputed in backward. A chunk starts anew at a document start; padding is never read. Decays are handled as in
/// `outer_scan`. Throws ShapeError where the inputs disagree. Sources: arXiv:2406.06484, arXiv:2412.06464,
/// arXiv:2503.14456.
DeltaScanOutput delta_scan(Tape& tape, const DeltaScanInput& input, const Layout& layout);

inline constexpr Index kDeltaChunk = 32;

/// One token of one head of the same scan: rows as above, those that the form does not have are null.
struct DeltaToken {
  const Real* q;                       ///< [K]
  const Real* k;                       ///< [K]
  const Real* v;                       ///< [V]
  Real beta = 0;                       ///< of the delta rule, where erase is null
  const Real* erase = nullptr;         ///< [K]
  const Real* write = nullptr;         ///< [K]
  const Real* decay_factor = nullptr;  ///< e^g, as Decay says
  Real scale = 1;
};

/// S: [K,V], updated in place;  y: [V], not part of the token.
void delta_scan_step(Decay decay, const DeltaToken& token, Matrix state, Real* y);

}  // namespace quipu::inline QUIPU_REAL_NS
