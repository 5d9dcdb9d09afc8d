#pragma once
#include "base/real.h"

/// SIMD kernels over contiguous arrays, dispatched at run time to the widest instructions of the CPU (Highway). They
/// run on the calling thread, never allocate, and give the same result whatever the number of threads. Output may be
/// the same array as an input, never a partly overlapping one. Sums run in a fixed order.
namespace quipu::inline QUIPU_REAL_NS::kernels {

/// The instructions that the kernels use on this CPU, such as "AVX3".
const char* simd_target();

void fill(Real* y, Real value, Index n);
void add_into(Real* y, const Real* x, Index n);                     ///< y += x
void add(Real* y, const Real* a, const Real* b, Index n);           ///< y = a + b
void axpy(Real* y, Real a, const Real* x, Index n);                 ///< y += a x
void scale(Real* y, Real a, const Real* x, Index n);                ///< y = a x
void multiply(Real* y, const Real* a, const Real* b, Index n);      ///< y = a b
void multiply_add(Real* y, const Real* a, const Real* b, Index n);  ///< y += a b
/// Rotates pairs (a, b): y_a = a c - b s, y_b = b c + a s, with s = sign sine. y_a, y_b may be a, b.
void rotate(Real* ya, Real* yb, const Real* a, const Real* b, const Real* cosine, const Real* sine, Real sign, Index n);
Real dot(const Real* a, const Real* b, Index n);
Real sum(const Real* x, Index n);
Real sum_of_squares(const Real* x, Index n);
Real max(const Real* x, Index n);  ///< n >= 1; NaN where any is
bool all_finite(const Real* x, Index n);

/// y = e^x, within one unit in the last place; 0 where it would be under 2^-125 (double: 2^-1021), infinity on
/// overflow, NaN for NaN. The same holds of the exponentials below.
void exp(Real* y, const Real* x, Index n);
/// y = 1 - e^x, with all its digits near x = 0.
void one_minus_exp(Real* y, const Real* x, Index n);
void exp_shifted(Real* y, const Real* x, Real shift, Index n);        ///< y = e^(x - shift)
void exp_difference(Real* y, const Real* a, const Real* b, Index n);  ///< y = e^(a - b)
/// y = x e^(a - b): rows of a scan scaled by a difference of cumulative log decays.
void multiply_exp_difference(Real* y, const Real* x, const Real* a, const Real* b, Index n);
/// y = e^(scale x - shift), and the sum of the results: one row of a softmax whose maximum is known.
Real exp_scaled_sum(Real* y, const Real* x, Real scale, Real shift, Index n);

/// Sines and cosines, for |x| up to 39,000, within three units in the last place.
void sine_cosine(Real* sine, Real* cosine, const Real* x, Index n);

/// y = softmax(scale x). A row of nothing but -infinity gives NaN.
void softmax_row(Real* y, const Real* x, Real scale, Index n);
/// dx = scale y (dy - <dy, y>), from the softmax y.
void softmax_row_backward(Real* dx, const Real* dy, const Real* y, Real scale, Index n);

/// The logarithm of a sum of nothing: finite, so that it can be stored, and below every other.
inline constexpr Real kNoLogSum = static_cast<Real>(-1e30);

/// One more logit in a running log-sum-exp, channel by channel: z, low <- log(e^(z + low) + e^s), where `low` holds the
/// digits that z has no room for (0 at first);  g = z_before - z: the log share that the earlier ones keep;  w = e^(s -
/// z): the share of the new one. Where z is kNoLogSum, g = 0 and w = 1.
void log_sum_step(Real* z, Real* low, Real* g, Real* w, const Real* s, Index n);
/// ds, and dz of z after the step turned into that of z before it, from the gradients of g and w.
void log_sum_step_backward(Real* ds, Real* dz, const Real* dg, const Real* dw, const Real* g, const Real* w, Index n);

}  // namespace quipu::inline QUIPU_REAL_NS::kernels
