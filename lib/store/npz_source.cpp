#include <algorithm>
#include <memory>

#include "store/byte_cursor.h"
#include "store/npy_header.h"
#include "store/strided_walk.h"
#include "store/zip_formats.h"

namespace quipu {

namespace {

constexpr std::uint64_t kLongestHeader = 1 << 16;
constexpr std::size_t kPiece = std::size_t{1} << 13;  // numbers decoded at a time

/// An array in the archive: NAME.npy, which is a header and the numbers in C or in Fortran order.
struct NpyArray {
  const ZipEntry* entry;
  std::uint64_t header_bytes;
  bool fortran;
};

class NpzSource final : public TensorSource {
 public:
  explicit NpzSource(std::unique_ptr<ZippedFile> zipped)
      : TensorSource(zipped->file.name(), "NumPy", zipped->file.size()), zipped_(std::move(zipped)) {
    for (const ZipEntry& entry : archive().entries()) {
      if (entry.name.ends_with(".npy")) add_array(entry);
    }
    finish_tensors();
  }

  std::optional<std::span<const std::byte>> stored(const TensorInfo& tensor) const override {
    const NpyArray& array = arrays_[index_of(tensor)];
    if (array.entry->deflated || (array.fortran && tensor.shape.size() > 1)) return std::nullopt;
    return archive().stored(*array.entry).subspan(array.header_bytes);
  }

 private:
  const ZipArchive& archive() const { return zipped_->archive; }

  void add_array(const ZipEntry& entry) {
    ZipReader reader(archive(), entry);
    std::string start(std::min<std::uint64_t>(entry.size, kNpyPrefix), '\0');
    reader.read(std::as_writable_bytes(std::span(start)));
    const std::uint64_t header_bytes = npy_header_bytes(name(), entry.name, start);
    if (header_bytes < start.size() || header_bytes > std::min(entry.size, kLongestHeader)) {
      throw InputError("{}: the header of '{}' claims {} bytes of {}; get the file again", name(),
                       shown_name(entry.name), header_bytes, entry.size);
    }
    std::string header(header_bytes, '\0');
    std::ranges::copy(start, header.begin());
    reader.read(std::as_writable_bytes(std::span(header)).subspan(start.size()));
    NpyHeader parsed = parse_npy_header(name(), entry.name, header);
    std::string tensor_name = entry.name.substr(0, entry.name.size() - std::string_view(".npy").size());
    const TensorInfo& tensor = add_tensor(std::move(tensor_name), parsed.type, std::move(parsed.shape));
    if (tensor.bytes() != entry.size - header_bytes) {
      throw InputError("{}: '{}' is {}, {} bytes, and has {}; get the file again", name(), shown_name(tensor.name),
                       type_and_shape(tensor), tensor.bytes(), entry.size - header_bytes);
    }
    arrays_.push_back({&entry, header_bytes, parsed.fortran});
  }

  void read_values(const TensorInfo& tensor, std::span<float> values) const override {
    const NpyArray& array = arrays_[index_of(tensor)];
    ZipReader reader(archive(), *array.entry);
    std::vector<std::byte> header(array.header_bytes);
    reader.read(header);
    const std::size_t width = tensor_block(tensor.type).bytes;
    std::vector<std::byte> bytes(std::min(kPiece, values.size()) * width);
    std::vector<float> piece(array.fortran ? bytes.size() / width : 0);
    StridedWalk walk = fortran_walk(tensor.shape);
    for (std::size_t first = 0; first < values.size(); first += kPiece) {
      const std::size_t count = std::min(kPiece, values.size() - first);
      const auto part = std::span(bytes).first(count * width);
      reader.read(part);
      if (!array.fortran) {
        decode_floats(tensor.type, part, values.subspan(first, count));
        continue;
      }
      decode_floats(tensor.type, part, std::span(piece).first(count));
      for (std::size_t i = 0; i < count; ++i) values[walk.next()] = piece[i];
    }
  }

  std::unique_ptr<ZippedFile> zipped_;
  std::deque<NpyArray> arrays_;
};

}  // namespace

std::unique_ptr<TensorSource> open_npz(std::unique_ptr<ZippedFile> zipped) {
  return std::make_unique<NpzSource>(std::move(zipped));
}

}  // namespace quipu
