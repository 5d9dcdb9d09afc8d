#pragma once
#include <hdf5.h>

#include <string>

#include "store/hdf5_session.h"

namespace quipu {

/// Lists an open file of `file_bytes` bytes: every group, data set and attribute. Accepts only what H5Writer writes:
/// no links but hard ones, no types but its own, and no data set larger than the file could hold. Throws InputError
/// beginning with `name`.
H5Catalogue walk_file(hid_t file, const std::string& name, std::uint64_t file_bytes);

/// The error for a file whose inside cannot be right; `reason` says what was seen.
[[noreturn]] void throw_damaged(const std::string& name, const std::string& reason);

/// Checks the storage of rows [first, first + rows) of a data set before HDF5 reads them, for it trusts the sizes of
/// chunks. Throws InputError where a chunk is missing or is not as large as it must be.
void check_chunks(hid_t data_set, const std::string& name, const H5Entry& entry, std::uint64_t first,
                  std::uint64_t rows);

}  // namespace quipu
