#pragma once
#include <hdf5.h>

#include <cstdint>

namespace quipu {

/// How HDF5 reaches a file: through our own descriptor, so that a file needs no name, nothing is locked, nothing is
/// read beyond the file's end, and a failure of the system is known by its number. After a failed write the rest is
/// swallowed: HDF5 can then close the file cleanly, and the writer reports `error`.
struct FileAccess {
  int descriptor = -1;
  std::uint64_t base = 0;  // offset of the HDF5 image in the file
  bool writable = false;
  int error = 0;          // of the first system call that failed
  bool past_end = false;  // something pointed beyond the end of the file
};

/// A file access property list that leads to `access` (which must outlive the open file), with HDF5 1.8's format.
/// Returns a negative number on failure.
hid_t make_access_list(FileAccess& access);

}  // namespace quipu
