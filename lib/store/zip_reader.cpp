#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "store/byte_cursor.h"
#include "store/zip_archive.h"

namespace quipu {

namespace {

/// The most that zlib counts in one call.
constexpr std::size_t kLargestCall = std::size_t{1} << 30;

uInt call_size(std::size_t bytes) { return static_cast<uInt>(std::min(bytes, kLargestCall)); }

}  // namespace

struct ZipReader::Impl {
  const std::string& file;
  const ZipEntry& entry;
  std::span<const std::byte> stored;
  std::uint64_t left;
  std::uint32_t crc = 0;
  z_stream inflater = {};

  [[noreturn]] void fail() const {
    throw InputError("{}: its zip entry '{}' is damaged: {} bytes that expand to {} were expected; get the file again",
                     file, shown_name(entry.name), entry.compressed, entry.size);
  }

  /// Expands as many bytes as there is room for.
  void expand(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      // zlib's interface takes no const.
      inflater.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
      inflater.avail_in = call_size(stored.size());
      inflater.next_out = reinterpret_cast<Bytef*>(bytes.data());
      inflater.avail_out = call_size(bytes.size());
      const std::size_t offered = inflater.avail_in;
      const std::size_t room = inflater.avail_out;
      const int status = inflate(&inflater, Z_NO_FLUSH);
      const std::size_t used = offered - inflater.avail_in;
      const std::size_t made = room - inflater.avail_out;
      stored = stored.subspan(used);
      bytes = bytes.subspan(made);
      const bool ended = status == Z_STREAM_END;
      if ((status != Z_OK && !ended) || (ended && !bytes.empty()) || (used == 0 && made == 0)) fail();
    }
  }

  void add_to_checksum(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const uInt n = call_size(bytes.size());
      crc = static_cast<std::uint32_t>(crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), n));
      bytes = bytes.subspan(n);
    }
  }
};

ZipReader::ZipReader(const ZipArchive& archive, const ZipEntry& entry)
    : impl_(new Impl{archive.file().name(), entry, archive.stored(entry), entry.size}) {
  if (entry.deflated && inflateInit2(&impl_->inflater, -MAX_WBITS) != Z_OK) {
    throw InputError("{}: cannot expand '{}': out of memory", impl_->file, shown_name(entry.name));
  }
}

ZipReader::~ZipReader() {
  if (impl_->entry.deflated) inflateEnd(&impl_->inflater);
}

std::uint64_t ZipReader::left() const { return impl_->left; }

void ZipReader::read(std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (bytes.size() > impl_->left) impl_->fail();
  if (impl_->entry.deflated) {
    impl_->expand(bytes);
  } else {
    std::memcpy(bytes.data(), impl_->stored.data(), bytes.size());
    impl_->stored = impl_->stored.subspan(bytes.size());
  }
  impl_->add_to_checksum(bytes);
  impl_->left -= bytes.size();
  if (impl_->left == 0 && impl_->crc != impl_->entry.crc) {
    throw InputError(
        "{}: its zip entry '{}' is damaged: its checksum is {:08x}, and {:08x} belongs there; get the file "
        "again",
        impl_->file, shown_name(impl_->entry.name), impl_->crc, impl_->entry.crc);
  }
}

}  // namespace quipu
