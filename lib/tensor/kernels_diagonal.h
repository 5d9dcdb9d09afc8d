#pragma once
#include "base/real.h"

/// SIMD kernels of a diagonal scan over a tile of channels, each with N numbers of state of its own:
///   h_t = e^{delta_t A} h_{t-1} + delta_t u_t B_t,   y_t = sum_n h_tn C_tn + D u_t.
/// Vectors run over channels. They run on the calling thread, never allocate, and sum in a fixed order.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// The largest tile, and the row length of the arrays that belong to it alone.
inline constexpr Index kDiagonalTile = 64;
/// What the width of a tile is a multiple of, so that it has no tail whatever the vectors.
inline constexpr Index kDiagonalStep = 16;

/// Some tokens of a tile of `width` channels. Rows of tokens stand `stride` apart, rows of [N,..] kDiagonalTile.
struct DiagonalTile {
  Index tokens, width, states, stride;
  const Real* delta;  ///< >= 0, [tokens]
  const Real* u;      ///< [tokens]
  const Real* b;      ///< [tokens,N], as are c, without a stride
  const Real* c;
  const Real* rates;  ///< A log2(e) <= 0, [N]
  const Real* skip;   ///< D, one row
};

/// Sets y [tokens], and h [N] in place.
void diagonal_forward(const DiagonalTile& tile, Real* h, Real* y);
/// Every h_t and every e^{delta_t A}.  history: [tokens+1,N], its first block given;  decays: [tokens,N].
void diagonal_history(const DiagonalTile& tile, Real* history, Real* decays);

struct DiagonalGradients {
  Real* dh;           ///< [N], in place
  Real *da, *dskip;   ///< of A, [N], and D, one row: added to
  Real *ddelta, *du;  ///< [tokens], set
  Real *db, *dc;      ///< [tokens,N] without a stride, set to the sums over the channels of the tile
  Real* room;         ///< diagonal_room numbers
};
void diagonal_backward(const DiagonalTile& tile, const Real* history, const Real* decays, const Real* dy,
                       const DiagonalGradients& d);
/// Numbers of `room` for up to `tokens` tokens.
Index diagonal_room(Index tokens, Index states);

/// One token of `channels` channels:  u, delta, skip, y: [channels];  a: A [channels,N];  b, c: [N];  h: [channels,N]
/// in place.
void diagonal_step(Real* y, Real* h, const Real* u, const Real* delta, const Real* a, const Real* b, const Real* c,
                   const Real* skip, Index channels, Index states);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
