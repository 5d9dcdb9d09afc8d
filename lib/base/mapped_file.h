#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"

namespace quipu {

/// A file's bytes in the address space: the system reads them as they are used, and nothing is copied. A stream (`-`, a
/// FIFO) is first spooled to a nameless file. The file must not be cut shorter while it is mapped: the system then
/// ends the process (SIGBUS).
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  explicit MappedFile(InputFile input);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Bytes that are in memory already, under a name; they must outlive it.
  static MappedFile borrow(std::string name, std::span<const std::byte> bytes);

  /// Takes a part of the file that was used out of memory; it comes back where it is used again.
  void let_go(std::span<const std::byte> part) const;

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  MappedFile() = default;

  std::string name_;
  std::span<const std::byte> bytes_;
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace quipu
