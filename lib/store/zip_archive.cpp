#include "store/zip_archive.h"

#include <unzip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>

#include "store/byte_cursor.h"

namespace quipu {

namespace {

constexpr std::uint64_t kMostExpansion = 16;
constexpr std::uint64_t kFreeExpansion = std::uint64_t{16} << 20;
constexpr std::size_t kMostEntries = std::size_t{1} << 20;
constexpr std::size_t kLongestName = 4096;
constexpr uLong kEncrypted = 1;

/// The archive's bytes as minizip reads them.
struct ByteStream {
  std::span<const std::byte> bytes;
  std::uint64_t position = 0;
};

voidpf open_stream(voidpf opaque, const void*, int) { return opaque; }

uLong read_stream(voidpf, voidpf stream, void* buffer, uLong count) {
  auto& from = *static_cast<ByteStream*>(stream);
  const std::uint64_t n = std::min<std::uint64_t>(count, from.bytes.size() - from.position);
  if (n > 0) std::memcpy(buffer, from.bytes.data() + from.position, n);
  from.position += n;
  return static_cast<uLong>(n);
}

ZPOS64_T tell_stream(voidpf, voidpf stream) { return static_cast<ByteStream*>(stream)->position; }

long seek_stream(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& from = *static_cast<ByteStream*>(stream);
  const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_END   ? from.bytes.size()
                             : origin == ZLIB_FILEFUNC_SEEK_CUR ? from.position
                                                                : 0;
  if (offset > from.bytes.size() - base) return -1;
  from.position = base + offset;
  return 0;
}

int close_stream(voidpf, voidpf) { return 0; }
int stream_error(voidpf, voidpf) { return 0; }

/// Whether an archive's end record stands where it must, at the very end; minizip is content with less.
bool has_end_record(std::span<const std::byte> bytes) {
  constexpr std::size_t kRecord = 22;
  constexpr std::size_t kLongestComment = 65535;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t comment = 0; comment <= kLongestComment && comment + kRecord <= all.size(); ++comment) {
    const std::string_view record = all.substr(all.size() - kRecord - comment, kRecord);
    std::uint16_t length;
    std::memcpy(&length, record.data() + kRecord - sizeof length, sizeof length);
    if (record.starts_with("PK\x05\x06") && length == comment) return true;
  }
  return false;
}

struct CloseZip {
  void operator()(void* zip) const { unzClose(zip); }
};
using OpenZip = std::unique_ptr<void, CloseZip>;

OpenZip open_zip(ByteStream& stream) {
  zlib_filefunc64_def functions = {};
  functions.zopen64_file = open_stream;
  functions.zread_file = read_stream;
  functions.ztell64_file = tell_stream;
  functions.zseek64_file = seek_stream;
  functions.zclose_file = close_stream;
  functions.zerror_file = stream_error;
  functions.opaque = &stream;
  return OpenZip(unzOpen2_64("", &functions));
}

/// The entry at which `zip` stands.
ZipEntry current_entry(unzFile zip, const MappedFile& file) {
  unz_file_info64 info = {};
  int error = unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0);
  if (error != UNZ_OK || info.size_filename > kLongestName) {
    throw InputError("{}: its zip directory is damaged; get the file again", file.name());
  }
  ZipEntry entry;
  entry.name.resize(info.size_filename);
  error = unzGetCurrentFileInfo64(zip, &info, entry.name.data(), info.size_filename, nullptr, 0, nullptr, 0);
  if (error == UNZ_OK && (info.flag & kEncrypted) != 0) {
    throw InputError("{}: its entry '{}' is encrypted; decrypt it first", file.name(), shown_name(entry.name));
  }
  int method = 0;
  int level = 0;
  if (error == UNZ_OK) error = unzOpenCurrentFile2(zip, &method, &level, 1);
  if (error != UNZ_OK || (method != 0 && method != Z_DEFLATED)) {
    throw InputError(
        "{}: its zip entry '{}' is damaged, or compressed by another method ({}) than deflate; get the "
        "file again",
        file.name(), shown_name(entry.name), info.compression_method);
  }
  entry.offset = unzGetCurrentFileZStreamPos64(zip);
  unzCloseCurrentFile(zip);
  entry.compressed = info.compressed_size;
  entry.size = info.uncompressed_size;
  entry.crc = static_cast<std::uint32_t>(info.crc);
  entry.deflated = method == Z_DEFLATED;
  return entry;
}

}  // namespace

ZipArchive::ZipArchive(const MappedFile& file) : file_(file) {
  ByteStream stream{file.bytes()};
  const OpenZip zip = open_zip(stream);
  if (zip == nullptr || !has_end_record(file.bytes())) {
    throw InputError(
        "{}: begins like a zip archive but has no zip directory at its end; it is cut off or damaged: get "
        "the file again",
        file.name());
  }
  int error = unzGoToFirstFile(zip.get());
  for (; error == UNZ_OK; error = unzGoToNextFile(zip.get())) {
    if (entries_.size() == kMostEntries) {
      throw InputError("{}: has more than {} zip entries; refused", file.name(), kMostEntries);
    }
    entries_.push_back(current_entry(zip.get(), file));
  }
  if (error != UNZ_END_OF_LIST_OF_FILE) {
    throw InputError("{}: its zip directory is damaged after entry {}; get the file again", file.name(),
                     entries_.size());
  }
  check_entries();
}

void ZipArchive::check_entries() {
  const std::uint64_t most = std::max(kFreeExpansion, file_.size() * kMostExpansion);
  std::uint64_t total = 0;
  for (const ZipEntry& entry : entries_) {
    if (entry.offset > file_.size() || entry.compressed > file_.size() - entry.offset ||
        (!entry.deflated && entry.compressed != entry.size)) {
      throw InputError("{}: its zip entry '{}' has {} bytes at byte {}, and the file has {}; get the file again",
                       file_.name(), shown_name(entry.name), entry.compressed, entry.offset, file_.size());
    }
    if (entry.size > most - total) {
      throw InputError("{}: would expand to {} bytes or more, and it has {}: that is out of proportion; refused",
                       file_.name(), entry.size, file_.size());
    }
    total += entry.size;
  }
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::ranges::sort(by_name_, {}, [this](std::uint32_t i) { return entries_[i].offset; });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const ZipEntry& before = entries_[by_name_[i - 1]];
    const ZipEntry& after = entries_[by_name_[i]];
    if (before.offset + before.compressed > after.offset) {
      throw InputError("{}: its zip entries '{}' and '{}' share bytes; refused", file_.name(), shown_name(before.name),
                       shown_name(after.name));
    }
  }
  const auto name_at = [this](std::uint32_t i) -> const std::string& { return entries_[i].name; };
  std::ranges::sort(by_name_, {}, name_at);
  if (const auto twice = std::ranges::adjacent_find(by_name_, {}, name_at); twice != by_name_.end()) {
    throw InputError("{}: has two zip entries named '{}'; get another copy of the file", file_.name(),
                     shown_name(name_at(*twice)));
  }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto name_at = [this](std::uint32_t i) { return std::string_view(entries_[i].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found == by_name_.end() || name_at(*found) != name ? nullptr : &entries_[*found];
}

std::string ZipArchive::read(const ZipEntry& entry) const {
  ZipReader reader(*this, entry);
  std::string bytes(entry.size, '\0');
  reader.read(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace quipu
