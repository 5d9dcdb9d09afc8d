#pragma once
#include <memory>

#include "store/tensor_source.h"
#include "store/zip_archive.h"

namespace quipu {

/// A zip archive with the file that it refers to; stays where it is.
struct ZippedFile {
  explicit ZippedFile(MappedFile mapped) : file(std::move(mapped)), archive(file) {}
  ZippedFile(const ZippedFile&) = delete;
  ZippedFile& operator=(const ZippedFile&) = delete;

  MappedFile file;
  ZipArchive archive;
};

/// NumPy's archive of NAME.npy entries.
std::unique_ptr<TensorSource> open_npz(std::unique_ptr<ZippedFile> zipped);

/// PyTorch's archive: `pickle` is its PREFIX/data.pkl, beside PREFIX/data/KEY.
std::unique_ptr<TensorSource> open_torch_zip(std::unique_ptr<ZippedFile> zipped, const ZipEntry& pickle);

}  // namespace quipu
