#include "fuzz/fuzz_reader.h"
#include "store/tensor_formats.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return quipu_fuzz::fuzz_format(data, size, quipu::open_gguf);
}
