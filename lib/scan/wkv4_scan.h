#pragma once
#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What the log-sum-exp channel scan reads. The state's true sums are a e^p and b e^p.
struct Wkv4Input {
  Var k{}, v{};            ///< [B,T,D]
  Var log_decay{};         ///< w <= 0, D numbers; undefined: 0
  Var bonus{};             ///< u, D numbers; undefined: 0
  Var a{}, b{}, p{};       ///< state before the first token, [B,D]; all undefined: nothing read yet
  bool keep_state = true;  ///< false: no state is returned
};

struct Wkv4Output {
  Var y;              ///< [B,T,D]; zero on padding
  Var a{}, b{}, p{};  ///< state after the last token, [B,D]
};

/// A weighted mean of the values so far, by channel, whose weights e^k fade:
///   y_t = (A_{t-1} + e^{u + k_t} v_t) / (B_{t-1} + e^{u + k_t}),
///   A_t = e^w A_{t-1} + e^{k_t} v_t,   B_t = e^w B_{t-1} + e^{k_t},   A = a e^p,  B = b e^p,  p_t = max(p_{t-1} + w,
///   k_t).
/// RWKV-4's wkv; with neither w nor u, AFT-simple. The state is kept every kWkv4Chunk tokens and recomputed in between
/// in backward. Documents start with a = b = 0 and p = kWkvNothing; padding is never read. Threads over lanes and
/// blocks of channels. Throws ShapeError where the inputs disagree. Sources: arXiv:2305.13048, arXiv:2105.14103.
Wkv4Output wkv4_scan(Tape& tape, const Wkv4Input& input, const Layout& layout);

inline constexpr Index kWkv4Chunk = 32;

/// One token of `channels` channels: the state in place. w and u may be null (0).
struct Wkv4State {
  Real *a, *b, *p;
};
void wkv4_step(const Real* k, const Real* v, const Real* log_decay, const Real* bonus, Wkv4State state, Real* y,
               Index channels);

}  // namespace quipu::inline QUIPU_REAL_NS
