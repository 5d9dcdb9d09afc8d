// The pickle alone, in an archive that is always right: six floats in a storage named 0.
#include "fuzz/fuzz_reader.h"
#include "store/foreign_bytes.h"
#include "store/tensor_formats.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string pickle(reinterpret_cast<const char*>(data), size);
  const std::string archive =
      quipu_test::zip({{"a/data.pkl", pickle}, {"a/data/0", quipu_test::bytes_of<float>({0, 1, 2, 3, 4, 5})}});
  quipu_fuzz::check_reader(std::as_bytes(std::span(archive)), [](quipu::MappedFile file) {
    quipu_fuzz::read_everything(*quipu::open_zip_tensors(std::move(file)));
  });
  return 0;
}
