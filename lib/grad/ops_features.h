#pragma once
#include "grad/tape.h"

/// Pieces of the random feature maps of kernel attention.
namespace quipu::inline QUIPU_REAL_NS {

/// u = c W x - c^2 |x|^2 / 2: the exponents of positive features of softmax attention, e^{u(q)} . e^{u(k)} ~ e^{c^2
/// q.k}. x: [..,K];  W: [M,K], constant;  u: [..,M]. Source: arXiv:2009.14794.
Var positive_exponents(Tape& tape, const Var& x, const Tensor& projection, Real c);

/// y = weight x / (|x| + eps), |x| over the last axis.  x: [..,H,K];  weight: H K elements, or undefined. eps may be 0;
/// a row of zeros stays one.
Var unit_rows(Tape& tape, const Var& x, const Var& weight, double eps);

/// y = c (sin u, cos u).  u: [..,D];  y: [..,2 D].
Var sine_cosine(Tape& tape, const Var& u, Real c);

/// The same over plain arrays on the calling thread, for one step. x, y: [rows,K];  weight: of the row r mod heads.
void unit_rows_into(Matrix y, Matrix x, const Tensor& weight, double eps);
void sine_cosine_into(Matrix y, Matrix u, Real c);

}  // namespace quipu::inline QUIPU_REAL_NS
