#pragma once
#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "store/hdf5_catalogue.h"

namespace quipu {

/// An HDF5 object, closed on destruction.
class H5Handle {
 public:
  using Closer = herr_t (*)(hid_t);

  H5Handle() = default;
  H5Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  H5Handle(H5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  H5Handle& operator=(H5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~H5Handle() { close(); }

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

  /// Closes now; negative on failure.
  herr_t close() noexcept { return is_open() ? closer_(std::exchange(id_, -1)) : 0; }

 private:
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

/// Every use of HDF5 holds this: the library is not made for threads. Starts it quietly the first time; its own
/// printing stays off. Throws InputError where the loaded library is not the one compiled against.
std::unique_lock<std::recursive_mutex> hdf5_session();

/// Why the last call failed, in HDF5's words, on one line.
std::string hdf5_reason();

/// The type of an element in a file.
hid_t stored_type(ElementType type);

/// The file's part [first, first + rows) along the first axis of a data set of this shape, and the same in memory.
std::pair<H5Handle, H5Handle> row_spaces(hid_t data_set, const H5Shape& shape, std::uint64_t first, std::uint64_t rows);

}  // namespace quipu
