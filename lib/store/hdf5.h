#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "store/hdf5_catalogue.h"

namespace quipu {

/// A kind of file (`quipu-dataset`) and the newest version of it that this build reads and writes.
struct H5Format {
  std::string name;
  int version = 1;
};

/// "1.10.8" with the version compiled against, where the loaded one differs.
std::string hdf5_versions();

/// What `created` says: now, or $SOURCE_DATE_EPOCH, as 2024-05-31T12:00:00Z. `seconds` (since 1970) stands in for now,
/// for a file whose making takes nothing from the time it is made at.
std::string creation_time(std::optional<std::int64_t> seconds = {});

/// A data set that grows along its first axis; made by `H5Writer::stream`, which owns it. Holds one block in memory.
class H5Stream {
 public:
  ~H5Stream();

  /// Adds whole rows (numbers, where the rows are single numbers). T must be the stream's type.
  template <typename T>
  void append(std::span<const T> data) {
    append_bytes(element_type_of<T>(), std::as_bytes(data));
  }

  /// Rows so far.
  std::uint64_t rows() const;

 private:
  friend class H5Writer;
  struct Impl;
  explicit H5Stream(std::unique_ptr<Impl> impl);
  void append_bytes(ElementType type, std::span<const std::byte> data);
  void finish();
  std::unique_ptr<Impl> impl_;
};

/// Writes an HDF5 file (`-`: to stdout) that appears under its name only by `commit`, complete and flushed to the disk.
/// Paths are absolute ("/train/tokens"); the groups on the way are made. The same calls give the same bytes, but for
/// the time `created`. Failures of the system are InputErrors with the file's name; a closed pipe is a ClosedPipe.
class H5Writer {
 public:
  H5Writer(const std::string& path, const H5Format& format, const std::string& created = creation_time());
  ~H5Writer();

  void group(const std::string& path);

  /// Writes a data set at once; data.size() must be the product of the shape (the empty shape: a single value).
  template <typename T>
  void write(const std::string& path, std::span<const T> data, const H5Shape& shape) {
    write_bytes(path, element_type_of<T>(), shape, std::as_bytes(data));
  }
  template <typename T>
  void write(const std::string& path, const std::vector<T>& data) {
    write(path, std::span<const T>(data), {data.size()});
  }

  /// Text, as a data set of bytes.
  void write_text(const std::string& path, std::string_view text);

  /// A short attribute (below 4 KiB) of a group or finished data set. "/" is the root.
  void attribute(const std::string& path, const std::string& name, const H5Value& value);

  /// Begins a data set written piece by piece, whose rows have the given shape. Finished by `commit`.
  H5Stream& stream(const std::string& path, ElementType type, const H5Shape& row = {});

  /// Finishes a stream before `commit`, so that it can be given attributes.
  void finish(H5Stream& stream);

  /// Whether a path was written, and all that was, with the digests so far.
  bool has(const std::string& path) const { return catalogue().contains(path); }
  const H5Catalogue& catalogue() const;

  /// Writes the digests and puts the file in its place. Call once, last.
  void commit();

  struct Impl;

 private:
  void write_bytes(const std::string& path, ElementType type, const H5Shape& shape, std::span<const std::byte> data);
  std::unique_ptr<Impl> impl_;
};

/// Reads a file written by H5Writer (`-`: from stdin). Opening it checks its format, its version, and the digest over
/// names, types, shapes, attributes and the data's own digests; data is checked block by block as it is read. What is
/// damaged, cut off, changed or foreign is an InputError of one line. May be used by several threads.
class H5Reader {
 public:
  /// Opens a file that must be of one of the accepted formats.
  H5Reader(const std::string& path, const std::vector<H5Format>& accepted);
  H5Reader(InputFile input, const std::vector<H5Format>& accepted);
  ~H5Reader();

  const std::string& name() const;
  const std::string& format() const;
  int version() const;
  const std::string& created_by() const;
  const std::string& created() const;

  /// The root's digest, 32 hexadecimal digits.
  const std::string& digest() const;

  /// Size of the file.
  std::uint64_t file_bytes() const;

  const H5Catalogue& catalogue() const;
  bool has(const std::string& path) const { return catalogue().contains(path); }

  /// The entry of a path. Throws InputError where the file lacks it.
  const H5Entry& entry(const std::string& path) const;

  /// Names directly below a group, sorted; none where there is no such group.
  std::vector<std::string> children(const std::string& group) const;

  /// Paths of all data sets below a group, relative to it, sorted by their attribute `index`, then by name.
  std::vector<std::string> data_sets(const std::string& group) const;

  std::uint64_t unsigned_attribute(const std::string& path, const std::string& name) const;
  std::int64_t integer_attribute(const std::string& path, const std::string& name) const;
  const std::string& text_attribute(const std::string& path, const std::string& name) const;

  /// A whole data set. Its type must be T's, else InputError.
  template <typename T>
  std::vector<T> read(const std::string& path) const {
    std::vector<T> data(elements(path, element_type_of<T>()));
    read_bytes(path, element_type_of<T>(), std::as_writable_bytes(std::span(data)));
    return data;
  }

  /// A whole data set into `data`, which must have its number of elements, else InputError with both.
  template <typename T>
  void read_into(const std::string& path, std::span<T> data) const {
    read_bytes(path, element_type_of<T>(), std::as_writable_bytes(data));
  }

  /// Rows first, first + 1, ... of a data set, as many as fill `data`. Pieces that are read again and again come from
  /// a cache of 64 MiB.
  template <typename T>
  void read_rows(const std::string& path, std::uint64_t first, std::span<T> data) const {
    read_row_bytes(path, element_type_of<T>(), first, std::as_writable_bytes(data));
  }

  std::string read_text(const std::string& path) const;

  /// Reads and checks everything that the file holds.
  void verify() const;

  struct Impl;

 private:
  std::uint64_t elements(const std::string& path, ElementType type) const;
  void read_bytes(const std::string& path, ElementType type, std::span<std::byte> data) const;
  void read_row_bytes(const std::string& path, ElementType type, std::uint64_t first, std::span<std::byte> data) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu
