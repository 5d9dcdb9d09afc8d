#pragma once
#include <vector>

#include "grad/tape.h"
#include "scan/layout.h"

namespace quipu::inline QUIPU_REAL_NS {

/// What a weight of 1 takes whole: the current token (the mu of RWKV-4 and 5), or the one before it (the maa of RWKV-6,
/// the x_* of RWKV-7, which is 1 - mu).
enum class ShiftTowards { current, previous };

/// How much of each channel: weight + offset.
struct ShiftWeight {
  Var weight;    ///< D numbers, of any shape
  Var offset{};  ///< [B,T,D], made from the input (RWKV-6); undefined: 0
};

struct TokenShift {
  std::vector<Var> mixed;  ///< one [B,T,D] a weight; zero on padding
  Var last;                ///< [B,D], the lane's last token; where it is padding alone, what came in
};

/// Blends every token with the one before it, several times at once, since the work is reading and writing:
///   y_j = x_{t-1} + (x_t - x_{t-1}) w_j   towards the current,    y_j = x_t + (x_{t-1} - x_t) w_j   towards the
///   previous.
/// x: [B,T,D];  last: the token before the first, [B,D]; undefined: zero. At a document start the previous token is 0;
/// padding is never read. The shifted sequence is never stored. Throws ShapeError where shapes do not fit.
TokenShift token_shift(Tape& tape, const Var& x, const Var& last, ShiftTowards towards,
                       const std::vector<ShiftWeight>& weights, const Layout& layout);

/// One token and one weight of the same.  y, x, last: [B,D];  weight: [D];  offset: [B,D] where there is one. After the
/// last weight, `last` takes x: `keep_token`.
void token_shift_step(Matrix y, Matrix x, const Tensor& last, ShiftTowards towards, const Tensor& weight,
                      Matrix offset = {});
void keep_token(Tensor& last, Matrix x);

}  // namespace quipu::inline QUIPU_REAL_NS
