#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace quipu {

/// The reader of a pipe that we write to has gone: a tool ends quietly. (SIGPIPE must be ignored for this to be seen.)
class ClosedPipe : public InputError {
 public:
  using InputError::InputError;
};

/// A POSIX file descriptor, closed on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }

  /// Closes now. Returns 0, or the error number (a full quota on a network may show only here).
  int close() noexcept;

 private:
  int number_ = -1;
};

/// Moves bytes at an offset of a descriptor, however many calls that takes. Return 0 or an error number; `read_at`
/// also returns how many bytes there were before the end of the file.
int write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);
std::pair<int, std::size_t> read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes);

/// A nameless file in $TMPDIR (else /tmp) that vanishes when it is closed. Throws InputError naming the folder.
Descriptor make_spool();

/// How a path is shown in messages: `-` as the given name of the stream.
std::string shown_path(const std::string& path, const char* stream_name);

/// A file to read: a path, or `-` for stdin. A FIFO or `<(...)` (/dev/fd/N) behaves like `-`. Every failure is an
/// InputError with the path and the system's reason; `-` on a terminal is a UsageError, for nobody would be typing.
class InputFile {
 public:
  explicit InputFile(const std::string& path);

  const std::string& name() const { return name_; }

  /// The next bytes, as many as fit unless the file ends before; 0 at its end.
  std::size_t read(std::span<std::byte> bytes);

  /// The next bytes, at least one, as soon as there are some; 0 at the end of the file.
  std::size_t read_some(std::span<std::byte> bytes);

  /// Everything from here to the end.
  std::string read_all();

  /// Whether the file begins with HDF5's signature. Asks before anything was read; consumes nothing, and waits for no
  /// more bytes of a pipe than it takes to tell.
  bool is_hdf5();

  /// Makes `read_at` possible: a stream is first copied, from where it stands, to a nameless file in $TMPDIR.
  void make_seekable();

  /// After `make_seekable`: starts again at the first byte.
  void rewind();

  /// After `make_seekable`: the size in bytes, and the bytes at an offset. Throws where the file ends too early.
  std::uint64_t size() const { return size_; }
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

  /// After `make_seekable`: the descriptor, where the file's first byte stands at `base()`.
  int descriptor() const { return descriptor_.get(); }
  std::uint64_t base() const { return base_; }

 private:
  std::size_t read_descriptor(std::span<std::byte> bytes);

  std::string name_;
  Descriptor descriptor_;
  std::string peeked_;  // read to look at the signature, not yet handed out
  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
};

/// A file to write: a path, or `-` for stdout. Nothing is seen under the path until `commit`: the bytes go to a
/// temporary file in the same folder, which is flushed to the disk and renamed, so that at any moment the path holds
/// the old content or the new, and never a part. Symbolic links are followed to their target, whose permissions stay.
/// Without `commit` the temporary file vanishes: it has no name where the file system allows that, else what a killed
/// process left behind is removed by the next OutputFile on the same path. A target that is no regular file (a pipe,
/// /dev/full, /dev/stdout) is written directly. Every failure is an InputError with the path and the system's reason; a
/// closed pipe is a ClosedPipe.
class OutputFile {
 public:
  /// `random` allows writing and reading anywhere through `descriptor()`; a target that cannot seek is then written
  /// by `commit`, from a nameless file in $TMPDIR.
  enum class Access { stream, random };

  explicit OutputFile(const std::string& path, Access access = Access::stream);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  const std::string& name() const { return name_; }
  bool is_terminal() const;

  /// Appends.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// The file under construction; with `Access::random` open for reading and writing, its first byte at offset 0.
  int descriptor() const;

  /// Flushes and puts the file in its place. Call once, last.
  void commit();

 private:
  void open_direct(Descriptor target, Access access);
  void open_temporary(bool exists, unsigned mode);
  /// Finds a name for which `make(path)` works, which returns false and sets errno where it does not.
  template <typename F>
  void make_temporary(F&& make);
  void copy_spool();
  void discard() noexcept;
  [[noreturn]] void fail(int error) const;

  std::string name_;
  std::string target_;     // the path renamed onto, links followed; empty: written directly
  std::string temporary_;  // empty while it has no name, and once renamed or removed
  Descriptor file_;        // the temporary file, or the direct target
  Descriptor spool_;       // stands in for a direct target that cannot seek
};

}  // namespace quipu
