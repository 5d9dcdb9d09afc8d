#include "store/tensor_formats.h"

#include <algorithm>

#include "store/byte_cursor.h"
#include "store/zip_formats.h"

namespace quipu {

namespace {

enum class Content { kSafetensors, kGgmf, kGguf, kZip, kLegacyTorch, kJson, kUnknown };

std::string_view first_bytes(const MappedFile& file, std::size_t most) {
  return {reinterpret_cast<const char*>(file.bytes().data()), std::min<std::size_t>(most, file.size())};
}

/// The pickled number 0x1950a86a20f9469cfc6c, with which PyTorch's legacy files begin.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

Content content_of(const MappedFile& file) {
  const std::string_view start = first_bytes(file, 64);
  if (start.starts_with("GGUF")) return Content::kGguf;
  if (start.starts_with("fmgg")) return Content::kGgmf;
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return Content::kZip;
  if (start.starts_with(kLegacyMagic)) return Content::kLegacyTorch;
  if (start.size() > 8 && start[8] == '{' && start[7] == '\0') return Content::kSafetensors;
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && start[first] == '{') return Content::kJson;
  return Content::kUnknown;
}

[[noreturn]] void refuse_unknown(const MappedFile& file) {
  if (file.size() == 0) throw InputError("{}: is empty; get the file again", file.name());
  throw InputError(
      "{}: is none of safetensors, PyTorch, ggmf, GGUF, NumPy .npz or a quipu checkpoint: it begins with "
      "'{}'; give a file of tensors",
      file.name(), shown_name(first_bytes(file, 8)));
}

}  // namespace

bool is_model_index(const MappedFile& file) { return content_of(file) == Content::kJson; }

std::unique_ptr<TensorSource> open_zip_tensors(MappedFile file) {
  auto zipped = std::make_unique<ZippedFile>(std::move(file));
  const ZipEntry* pickle = nullptr;
  bool arrays = false;
  for (const ZipEntry& entry : zipped->archive.entries()) {
    const std::size_t slash = entry.name.find('/');
    if (entry.name == "data.pkl" || (slash != std::string::npos && entry.name.substr(slash) == "/data.pkl")) {
      pickle = &entry;
    }
    arrays = arrays || entry.name.ends_with(".npy");
  }
  if (pickle != nullptr) return open_torch_zip(std::move(zipped), *pickle);
  if (arrays) return open_npz(std::move(zipped));
  throw InputError(
      "{}: is a zip archive with neither a PyTorch pickle (data.pkl) nor NumPy arrays (.npy) among its {} "
      "entries; give a file of tensors",
      zipped->file.name(), zipped->archive.entries().size());
}

std::unique_ptr<TensorSource> open_tensor_bytes(MappedFile file) {
  switch (content_of(file)) {
    case Content::kSafetensors:
      return open_safetensors(std::move(file));
    case Content::kGgmf:
      return open_ggmf(std::move(file));
    case Content::kGguf:
      return open_gguf(std::move(file));
    case Content::kZip:
      return open_zip_tensors(std::move(file));
    case Content::kLegacyTorch:
      return open_legacy_torch(std::move(file));
    case Content::kJson:
      throw InputError("{}: is JSON where a file of tensors belongs; give safetensors or PyTorch files", file.name());
    case Content::kUnknown:
      break;
  }
  refuse_unknown(file);
}

}  // namespace quipu
