#pragma once
#include <vector>

#include "grad/tape.h"

namespace quipu::inline QUIPU_REAL_NS {

/// y[b, j] = row `picks[b * n + j]` of lane b of x followed by z along the second axis; zero where a pick is -1.
/// x: [B,P,..] or undefined (P = 0);  z: [B,T,..] or undefined;  y: [B,n,..]. A row may be picked at most once.
Var pick_rows(Tape& tape, const Var& x, const Var& z, const std::vector<Index>& picks, Index n);

/// y, of `shape` [..,D]: its row i is row `picks[i]` of the sources [..,D] one behind another; zero where a pick is -1.
/// A row may be picked several times. ShapeError where the widths differ.
Var gather_rows(Tape& tape, const std::vector<Var>& sources, const std::vector<Index>& picks, const Shape& shape);

/// The last axis of x [..,D] cut into pieces of `widths`, D in all.
std::vector<Var> split_columns(Tape& tape, const Var& x, const std::vector<Index>& widths);

}  // namespace quipu::inline QUIPU_REAL_NS
