#pragma once
#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// Where the log decay g <= 0 of an outer-product scan acts.
enum class Decay {
  none,    ///< S_t = S_{t-1} + k_t v_t^T
  scalar,  ///< S_t = e^{g_t} S_{t-1} + k_t v_t^T              g: [B,T,Hs]
  key,     ///< S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T        g: [B,T,Hs,K]
  value,   ///< S_t = S_{t-1} diag(e^{g_t}) + k_t v_t^T        g: [B,T,Hs,V]
};

/// What an outer-product scan reads. There is a state for each of the Hs heads of v. Heads are shared in one of two
/// ways: H = G Hs queries read in groups, query head h the state of head h / G (k has Hs heads); or Hk = Hs / G keys
/// and queries serve G states each, state head j those of head j / G (not for Decay::key).
struct OuterScanInput {
  Decay decay = Decay::none;
  Var q{};          ///< [B,T,H,K]; H = Hk where keys are shared
  Var k{};          ///< [B,T,Hk,K]
  Var v{};          ///< [B,T,Hs,V]
  Var log_decay{};  ///< as Decay says, or the same for every token: [Hs], [Hs,K] or [Hs,V]; undefined for `none`
  Var state{};      ///< S before the first token, [B,Hs,K,V]; undefined: zero
  /// Also carry z_t, the same recurrence with v = 1, and return q_t . z_t (not for Decay::value, nor shared keys).
  bool normaliser = false;
  Var z{};  ///< z before the first token, [B,Hs,K]; undefined: zero
  /// u, [Hs,K]. Where defined, a token's own pair is read with this weight instead of from the state:
  /// y_t = (S_{t-1} + diag(u) k_t v_t^T)^T q_t (not with a normaliser, for Decay::value, nor shared keys).
  Var bonus{};
};

struct OuterScanOutput {
  Var y;            ///< y_t = S_t^T q_t, [B,T,max(H,Hs),V]; zero on padding
  Var denominator;  ///< q_t . z_t, [B,T,H]; 1 on padding
  Var state{};      ///< S after the last token, [B,Hs,K,V]
  Var z{};          ///< z after the last token, [B,Hs,K]
};

/// The gated outer-product scan, in its chunkwise parallel form: products within chunks of kOuterChunk tokens, the
/// state handed from chunk to chunk. The state is kept at chunk starts and all else recomputed in backward. A chunk
/// starts anew at a document start; padding is never read. Decays stay in log space: a chunk is cut into blocks
/// within which they sum to less than kDecayRange, so that no exponential can overflow and none loses its digits.
/// Throws ShapeError where the inputs disagree. Sources: arXiv:2006.16236, arXiv:2312.06635, arXiv:2409.07146; with a
/// bonus arXiv:2404.05892, with shared keys arXiv:2405.21060.
OuterScanOutput outer_scan(Tape& tape, const OuterScanInput& input, const Layout& layout);

inline constexpr Index kOuterChunk = 64;
/// Also what RWKV-7's bounded decays sum to in a chunk of `delta_scan`, 33 states of e^-1/2 each.
inline constexpr Real kDecayRange = 20;

/// One token of the same scan, for one state head and its queries.  q: [G,K];  k: [K];  v: [V];  decay_factor: e^g, as
/// Decay says;  S: [K,V] and z: [K] (or null), updated in place;  y: [G,V];  denominator: [G] where z is given;  bonus:
/// [K] or null.
void outer_scan_step(Decay decay, Matrix q, const Real* k, const Real* v, const Real* decay_factor, Matrix state,
                     Real* z, Matrix y, Real* denominator, const Real* bonus = nullptr);

}  // namespace quipu::inline QUIPU_REAL_NS
