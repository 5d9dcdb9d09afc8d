#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace quipu {

/// A file in a zip archive.
struct ZipEntry {
  std::string name;
  std::uint64_t offset = 0;      // of its stored bytes in the archive
  std::uint64_t compressed = 0;  // stored bytes
  std::uint64_t size = 0;        // bytes once expanded
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// The directory of a zip archive in memory. Opening refuses, as InputErrors, what is no archive, encrypted entries,
/// compression other than deflate, names that occur twice, entries that share bytes, and archives that would expand out
/// of proportion (beyond 16 times their size, and 16 MiB).
class ZipArchive {
 public:
  explicit ZipArchive(const MappedFile& file);

  const std::deque<ZipEntry>& entries() const { return entries_; }
  /// nullptr where there is none.
  const ZipEntry* find(std::string_view name) const;

  /// The bytes of an entry as they are stored.
  std::span<const std::byte> stored(const ZipEntry& entry) const {
    return file_.bytes().subspan(entry.offset, entry.compressed);
  }

  /// All of an entry, expanded, its checksum checked. For small ones: the caller knows that `entry.size` is bearable.
  std::string read(const ZipEntry& entry) const;

  const MappedFile& file() const { return file_; }

 private:
  void check_entries();

  const MappedFile& file_;
  std::deque<ZipEntry> entries_;
  std::vector<std::uint32_t> by_name_;
};

/// Reads an entry from its start to its end, holding no more of it than a window. At the end its size and checksum must
/// be right. Throws InputError where they are not, or where the compressed bytes are damaged.
class ZipReader {
 public:
  ZipReader(const ZipArchive& archive, const ZipEntry& entry);
  ~ZipReader();

  std::uint64_t left() const;

  /// The next bytes.
  void read(std::span<std::byte> bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quipu
