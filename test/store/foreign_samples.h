#pragma once
#include <string>
#include <vector>

#include "store/foreign_bytes.h"

// One good file a format, with a bit of everything that the format has: for the tests, and the seeds of the fuzzers.
namespace quipu_test {

inline std::string safetensors_sample() {
  return safetensors(
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
      R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
      R"("one":{"dtype":"I64","shape":[],"data_offsets":[28,36]},)"
      R"("none":{"dtype":"F16","shape":[0,5],"data_offsets":[36,36]}}   )",
      bytes_of<std::uint16_t>({0x3f80, 0xc040}) + bytes_of<float>({1, 2, 3, 4, 5, 6.5F}) + bytes_of(std::int64_t{-3}));
}

inline std::string ggmf_header(std::uint32_t version = 101, std::uint32_t type = 0) {
  return "fmgg" + bytes_of<std::uint32_t>({version, 256, 64, 3, type});
}

/// `sizes` as the file has them: the innermost axis first.
inline std::string ggmf_tensor(const std::string& name, std::uint32_t type, const std::vector<std::uint32_t>& sizes,
                               const std::string& data) {
  return bytes_of(static_cast<std::uint32_t>(sizes.size())) + bytes_of(static_cast<std::uint32_t>(name.size())) +
         bytes_of(type) + bytes_of(sizes) + name + data;
}

inline std::string ggmf_sample() {
  const std::string block = bytes_of<std::uint16_t>({0x3c00, 0x4000}) + std::string(4, '\0') + std::string(16, '\x21');
  return ggmf_header(101, 8) + ggmf_tensor("w", 0, {3, 2}, bytes_of<float>({1, 2, 3, 4, 5, 6})) +
         ggmf_tensor("h", 1, {1, 1, 2}, bytes_of<std::uint16_t>({0x3c00, 0xc000})) +
         ggmf_tensor("q", 8, {32, 1}, block);
}

inline std::string gguf_text(const std::string& text) { return with_length<std::uint64_t>(text); }

inline std::string gguf_tensor(const std::string& name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                               std::uint64_t offset) {
  return gguf_text(name) + bytes_of(static_cast<std::uint32_t>(sizes.size())) + bytes_of(sizes) + bytes_of(type) +
         bytes_of(offset);
}

inline std::string gguf_value(const std::string& key, std::uint32_t type, const std::string& bytes) {
  return gguf_text(key) + bytes_of(type) + bytes;
}

/// A file of these key-values and tensors (already bytes), its data aligned to 32.
inline std::string gguf(std::uint64_t values, const std::string& metadata, std::uint64_t tensors,
                        const std::string& infos, const std::string& data, std::uint32_t version = 3) {
  std::string bytes = "GGUF" + bytes_of(version) + bytes_of(tensors) + bytes_of(values) + metadata + infos;
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + data;
}

inline std::string gguf_sample() {
  const std::string metadata =
      gguf_value("general.architecture", 8, gguf_text("rwkv6")) + gguf_value("n", 4, bytes_of(std::uint32_t{7})) +
      gguf_value("eps", 6, bytes_of(1e-5F)) + gguf_value("yes", 7, "\x01") +
      gguf_value("huge", 10, bytes_of(~std::uint64_t{0})) +
      gguf_value("tokens", 9,
                 bytes_of(std::uint32_t{8}) + bytes_of(std::uint64_t{3}) + gguf_text("a") + gguf_text("") +
                     gguf_text("\xff\n")) +
      gguf_value("scores", 9, bytes_of(std::uint32_t{6}) + bytes_of(std::uint64_t{2}) + bytes_of<float>({0.5F, -1}));
  const std::string block = bytes_of(std::uint16_t{0x3c00}) + std::string(32, '\x03');
  std::string data = bytes_of<float>({1, 2, 3, 4, 5, 6});
  data.resize(32);
  data += block + block;
  data.resize(32 + 96);
  data += bytes_of<std::uint16_t>({0x3f80, 0x4000});
  return gguf(7, metadata, 3,
              gguf_tensor("w", {3, 2}, 0, 0) + gguf_tensor("q", {32, 2}, 8, 32) + gguf_tensor("b", {2}, 30, 128), data);
}

}  // namespace quipu_test
