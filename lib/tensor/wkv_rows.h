#pragma once
#include "base/real.h"

/// Kernels of the log-sum-exp channel scan (scan/wkv4_scan.h) over consecutive tokens of up to kWkvChannels channels.
/// The true sums of a state (a, b, p) are a e^p and b e^p; p only moves so far that no exponential is above 1. Within a
/// call p is a start plus a whole number of decays, so that even decays far below p's last digit add up exactly.
namespace quipu::inline QUIPU_REAL_NS::kernels {

inline constexpr Index kWkvChannels = 64;
/// The p of a state that has read nothing (its a and b are 0).
inline constexpr Real kWkvNothing = Real(-1e38);

struct WkvRows {
  Index tokens, channels;
  Index stride;  ///< from token to token in k, v and whatever has their shape
  const Real *k, *v;
  const Real *w, *u;  ///< log decay and bonus, one a channel
};
/// One number a channel each.
struct WkvState {
  Real *a, *b, *p;
};

/// y_t = (a e^p + e^{u+k} v) / (b e^p + e^{u+k}) from the state before t;  then a e^p <- e^w a e^p + e^k v, b likewise
/// with v = 1. Updates the state.
void wkv_forward(const WkvRows& rows, WkvState state, Real* y);

/// Numbers a token and channel in a trace.
inline constexpr Index kWkvTrace = 4;
/// Runs the state alone and records it before every token: `trace` has room for tokens * kWkvTrace * channels numbers.
/// `rest` [channels]: what a and b have to be multiplied with at the end, where p was rounded.
void wkv_trace(const WkvRows& rows, WkvState state, Real* trace, Real* rest);

/// Goes back over a trace. `gradient` holds those of a and b after the last token and, as p, what the choice of p alone
/// is worth; it is left as they are before the first token. dk, dv: written; dw, du: added to. dy may be null (0).
void wkv_backward(const WkvRows& rows, const Real* trace, const Real* dy, WkvState gradient, Real* dk, Real* dv,
                  Real* dw, Real* du);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
