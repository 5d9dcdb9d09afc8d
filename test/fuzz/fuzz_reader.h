#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/mapped_file.h"
#include "store/tensor_source.h"

namespace quipu_fuzz {

/// Runs a reader on the bytes of a file, under these rules: it ends normally or by an InputError whose message is one
/// line that begins with the file's name; and at no time does it hold more memory than four times the file and
/// `kFreeMemory`. A broken rule ends the process, as libFuzzer expects.
void check_reader(std::span<const std::byte> bytes, const std::function<void(quipu::MappedFile)>& read);

/// The memory that a reader may take however small the file is: windows of zlib, and what pickles may take.
inline constexpr std::size_t kFreeMemory = std::size_t{2} << 20;

/// Reads all tensors of a source, but for very large ones, and all its metadata. What is read is not counted as the
/// source's memory.
void read_everything(const quipu::TensorSource& source);

/// A fuzzer of one format.
using Open = std::unique_ptr<quipu::TensorSource> (*)(quipu::MappedFile);
inline int fuzz_format(const std::uint8_t* data, std::size_t size, Open open) {
  check_reader(std::as_bytes(std::span(data, size)),
               [&](quipu::MappedFile file) { read_everything(*open(std::move(file))); });
  return 0;
}

}  // namespace quipu_fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
