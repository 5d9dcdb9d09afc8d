#pragma once
#include "tensor/view.h"

/// Kernels of AFT's means (scan/aft_window.h): tiles of R queries by S keys over some channels. Log sums stay in log
/// space: a running sum is (top, numerator, denominator), the true ones times e^top. Matrices of queries have R rows,
/// of keys S rows, biases w are [R,S].
namespace quipu::inline QUIPU_REAL_NS::kernels {

struct AftTile {
  Matrix k, v;    ///< [S,C]
  Matrix w;       ///< [R,S]
  Index visible;  ///< keys that the first query sees; every further one sees one more, up to S
};

struct AftSums {
  Matrix top, numerator, denominator;  ///< [R,C]

  AftSums rows(Index begin, Index end) const {
    return {top.slice(begin, end), numerator.slice(begin, end), denominator.slice(begin, end)};
  }
};

/// Adds e^{k + w} v and e^{k + w} of the visible keys. `top` is first -infinity.
void aft_add(const AftTile& tile, const AftSums& sums);
/// Adds sums [R,C] that were made with e^{k - key_top} and e^{w - bias_top}; bias_top: one a query, `stride` apart.
void aft_merge(const AftSums& sums, Matrix numerator, Matrix denominator, const Real* key_top, const Real* bias_top,
               Index stride);
/// y = numerator / denominator, log_sum = top + log(denominator); log_sum may be null.
void aft_finish(const AftSums& sums, Matrix y, Matrix log_sum);

/// top = the largest key of each channel, ek = e^{k - top}, ekv = ek v.
void aft_key_weights(Matrix k, Matrix v, Real* top, Matrix ek, Matrix ekv);

/// What the backward pass has of the queries, [R,C] each.
struct AftQueries {
  Matrix dy, y, log_sum;
};
/// With p = e^{k + w - log_sum}:  dv += sum p dy,  dk += sum p dy (v - y)  over the queries that see a key.
void aft_key_gradients(const AftTile& tile, const AftQueries& queries, Matrix dk, Matrix dv);
/// dw += sum over the channels of p dy (v - y), for visible keys.
void aft_bias_gradients(const AftTile& tile, const AftQueries& queries, Matrix dw);
/// g = dy e^{key_top + bias_top - log_sum},  h = g y.
void aft_scaled_gradients(const AftQueries& queries, const Real* key_top, const Real* bias_top, Index stride, Matrix g,
                          Matrix h);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
