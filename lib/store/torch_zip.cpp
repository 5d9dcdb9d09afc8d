#include <algorithm>

#include "store/byte_cursor.h"
#include "store/torch_source.h"
#include "store/zip_formats.h"

namespace quipu {

namespace {

constexpr std::uint64_t kFreePickle = std::uint64_t{1} << 20;

class TorchZipSource final : public TorchSource {
 public:
  TorchZipSource(std::unique_ptr<ZippedFile> zipped, const ZipEntry& pickle)
      : TorchSource(zipped->file.name(), "PyTorch", zipped->file.size()), zipped_(std::move(zipped)) {
    const std::string prefix = pickle.name.substr(0, pickle.name.size() - std::string_view("data.pkl").size());
    check_byte_order(prefix);
    std::string expanded;
    std::span<const std::byte> bytes = zipped_->archive.stored(pickle);
    if (pickle.deflated) {
      if (pickle.size > std::max(file_bytes(), kFreePickle)) {
        throw InputError("{}: its pickle expands to {} bytes, and the file has {}: that is out of proportion; refused",
                         name(), pickle.size, file_bytes());
      }
      expanded = zipped_->archive.read(pickle);
      bytes = std::as_bytes(std::span(expanded));
    }
    const Pickle content = read_pickle(name(), bytes, torch_memory(file_bytes()) - expanded.size());
    add_pickle(content, [&](const TorchStorageInfo& info) { return find_storage(prefix, info); });
  }

 private:
  void check_byte_order(const std::string& prefix) const {
    const ZipEntry* entry = zipped_->archive.find(prefix + "byteorder");
    if (entry == nullptr || entry->size > 16) return;
    const std::string order = zipped_->archive.read(*entry);
    if (order != "little") {
      throw InputError(
          "{}: its numbers are stored {}-endian, and little-endian ones are read; save it on another machine", name(),
          shown_name(order));
    }
  }

  TorchStorage find_storage(const std::string& prefix, const TorchStorageInfo& info) const {
    const ZipEntry* entry =
        info.key.size() > 256 ? nullptr : zipped_->archive.find(prefix + "data/" + std::string(info.key));
    if (entry == nullptr || entry->size < info.bytes()) {
      throw InputError("{}: storage '{}' of {} bytes {}; get the file again", name(), shown_name(info.key),
                       info.bytes(),
                       entry == nullptr ? "is missing" : fmt::format("has only {} in the file", entry->size));
    }
    if (entry->deflated) return {{}, entry};
    return {zipped_->archive.stored(*entry).first(info.bytes()), nullptr};
  }

  const ZipArchive* archive() const override { return &zipped_->archive; }

  std::unique_ptr<ZippedFile> zipped_;
};

}  // namespace

std::unique_ptr<TensorSource> open_torch_zip(std::unique_ptr<ZippedFile> zipped, const ZipEntry& pickle) {
  return std::make_unique<TorchZipSource>(std::move(zipped), pickle);
}

}  // namespace quipu
