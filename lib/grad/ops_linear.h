#pragma once
#include "grad/tape.h"
#include "tensor/weight.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y = x W^T + b.  x: [..,in];  W: [out,in];  b: [out] or undefined;  y: [..,out].
/// Throws ShapeError where the widths disagree.
Var linear(Tape& tape, const Var& x, const Var& weight, const Var& bias = {});
/// The same with a weight that is not trained, in any number format. Throws InternalError where the tape would need
/// its backward form.
Var linear_untrained(Tape& tape, const Var& x, const Weight& weight, const Var& bias = {});

/// A map for each head: y_h = W_h x_h + b_h.  x: [..,H,in];  W: [H,out,in];  b: [H,out] or undefined;  y: [..,H,out].
Var linear_heads(Tape& tape, const Var& x, const Var& weight, const Var& bias = {});
/// The same without a tape.  x: [rows H,in];  y: [rows H,out].
void linear_heads_into(Matrix y, Matrix x, const Tensor& weight, const Tensor& bias = {});

/// `linear` without a tape, for the recurrent step.  x: [rows,in];  y: [rows,out], written in full.
void linear_into(Matrix y, Matrix x, const Weight& weight, const Tensor& bias = {});

/// Column sums of y [rows,cols], added into sum [cols]: blocks of rows in a fixed order, summed in double, so that
/// the result does not depend on the number of threads.
void add_column_sums(Real* sum, Matrix y);

}  // namespace quipu::inline QUIPU_REAL_NS
