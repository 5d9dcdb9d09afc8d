// make_corpus FOLDER FILES: writes the seeds of every fuzzer into FOLDER/NAME; FILES is test/store/foreign.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/foreign_samples.h"
#include "store/zip_archive.h"

namespace {

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_seed(const std::filesystem::path& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
}

/// The pickle in an archive that torch.save wrote.
std::string pickle_of(const std::string& archive) {
  const auto file = quipu::MappedFile::borrow("f", std::as_bytes(std::span(archive)));
  const quipu::ZipArchive zip(file);
  for (const quipu::ZipEntry& entry : zip.entries()) {
    if (entry.name.ends_with("data.pkl")) return zip.read(entry);
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: make_corpus FOLDER FILES\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::filesystem::path files = argv[2];
  write_seed(folder / "safetensors", "sample", quipu_test::safetensors_sample());
  write_seed(folder / "ggmf", "sample", quipu_test::ggmf_sample());
  write_seed(folder / "gguf", "sample", quipu_test::gguf_sample());
  write_seed(folder / "index", "sample",
             R"({"metadata":{"total_size":1},"weight_map":{"a":"x","b":"x","none":"x","one":"x"}})");
  write_seed(folder / "torch_legacy", "legacy.pt", read_whole(files / "legacy.pt"));
  for (const char* name : {"zip.pt", "module.pt", "tensor.pt", "object.pt"}) {
    write_seed(folder / "zip", name, read_whole(files / name));
    write_seed(folder / "pickle", name, pickle_of(read_whole(files / name)));
  }
  for (const char* name : {"stored.npz", "deflated.npz", "objects.npz"}) {
    write_seed(folder / "zip", name, read_whole(files / name));
  }
}
