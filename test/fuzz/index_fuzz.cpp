// The index of a sharded model, whose shards are all the same file.
#include "fuzz/fuzz_reader.h"
#include "store/foreign_samples.h"
#include "store/tensor_formats.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string kShard = quipu_test::safetensors_sample();
  quipu_fuzz::check_reader(std::as_bytes(std::span(data, size)), [](quipu::MappedFile index) {
    const auto open_shard = [](const std::string& path) {
      if (path.find('/', 2) != std::string::npos) std::abort();  // outside the folder
      return quipu::open_safetensors(quipu::MappedFile::borrow("f", std::as_bytes(std::span(kShard))));
    };
    quipu_fuzz::read_everything(*quipu::open_sharded(index, ".", open_shard));
  });
  return 0;
}
