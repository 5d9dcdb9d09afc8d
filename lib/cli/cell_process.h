#pragma once
#include <optional>

#include "profile/cell.h"

namespace quipu {

/// Measures a cell in a process of its own, this program run again with the hidden option --cell: what it has resident
/// is then the cell's alone. blas: as --blas. A process that ends otherwise than it should becomes the row's note.
/// Nothing where a stop was asked for, which ends the process at once. Throws InternalError where the cell met a bug.
std::optional<ProfileRow> measure_apart(const CellRequest& cell, int threads, const std::string& blas);

/// The other end: measures the cell of --cell and writes the row to standard output. Ends with the process that asked.
void answer_cell(const std::string& json);

}  // namespace quipu
