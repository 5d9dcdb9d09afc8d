#pragma once
#include <cstdint>
#include <span>

#include "grad/tape.h"

/// Sinusoidal and rotary positions. Positions are 64-bit integers and angles are computed in double, since a stream may
/// be longer than a float can count.
namespace quipu {

/// How sines and cosines lie in a row of width D, and their frequencies, i = 0 .. D/2-1:
/// interleaved: sin, cos, sin, cos, ... of position 10000^(-2i/D)           (Vaswani et al.)
/// halves: all sines, then all cosines, the same frequencies                (Transformer-XL)
/// fairseq: halves with 10000^(-i/(D/2-1)); fairseq counts positions from padding_idx + 1.
enum class SinusoidLayout { interleaved, halves, fairseq };

/// Which elements of a head make a pair: (2i, 2i+1), or (i, i + K/2).
enum class RopeLayout { interleaved, half };

inline namespace QUIPU_REAL_NS {

/// Rows of sinusoids, one a position: [positions, width]. Throws ShapeError where the width is odd.
Tensor sinusoids(SinusoidLayout layout, std::span<const std::int64_t> positions, Index width);
void sinusoids_into(SinusoidLayout layout, std::span<const std::int64_t> positions, Matrix rows);

/// Cosines and sines of position base^(-2i/K), [positions, K/2] each: made once, and used by all layers of a model.
struct RopeAngles {
  Tensor cosine, sine;
};
RopeAngles rope_angles(std::span<const std::int64_t> positions, Index head_width, double base);

/// Rotates every pair (a, b) of x [..,H,K] by its angle: (a cos - b sin, b cos + a sin). One position for every H
/// heads, as in [B,T,H,K] with positions [B,T]. Throws ShapeError where K is odd or the number of positions does not
/// fit.
Var rope(Tape& tape, const Var& x, const RopeAngles& angles, RopeLayout layout);
Var rope(Tape& tape, const Var& x, std::span<const std::int64_t> positions, double base, RopeLayout layout);
/// The same over plain arrays on the calling thread, without allocation, for one step: x [B,H,K], positions [B].
/// y may be x.
void rope_into(View y, View x, std::span<const std::int64_t> positions, double base, RopeLayout layout);

}  // namespace QUIPU_REAL_NS
}  // namespace quipu
