#include "text/tokenizer_blobs.h"

#include <utility>

#include "base/error.h"

namespace quipu {

void append_u32(std::string& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t read_u32(std::string_view bytes, std::size_t index) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[4 * index + i]);
  return value;
}

std::string_view find_blob(const TokenizerData& data, std::string_view name) {
  for (const TokenizerData::Blob& b : data.blobs) {
    if (b.name == name) return b.bytes;
  }
  throw InputError("tokenizer: {}: has no '{}'; the file is damaged, make it again", data.kind, name);
}

std::vector<std::uint32_t> read_numbers(const TokenizerData& data, std::string_view name, std::size_t columns) {
  const std::string_view bytes = find_blob(data, name);
  if (bytes.size() % (4 * columns) != 0) {
    throw InputError("tokenizer: {}: '{}' has {} bytes, no multiple of {}; the file is damaged, make it again",
                     data.kind, name, bytes.size(), 4 * columns);
  }
  std::vector<std::uint32_t> numbers(bytes.size() / 4);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = read_u32(bytes, i);
  return numbers;
}

void pack_strings(std::span<const std::string> strings, std::string bytes_name, std::string lengths_name,
                  TokenizerData& data) {
  std::string bytes;
  std::string lengths;
  for (const std::string& string : strings) {
    bytes += string;
    append_u32(lengths, static_cast<std::uint32_t>(string.size()));
  }
  data.blobs.push_back({std::move(bytes_name), std::move(bytes)});
  data.blobs.push_back({std::move(lengths_name), std::move(lengths)});
}

std::vector<std::string> unpack_strings(const TokenizerData& data, std::string_view bytes_name,
                                        std::string_view lengths_name) {
  std::string_view bytes = find_blob(data, bytes_name);
  const std::string_view lengths = find_blob(data, lengths_name);
  std::vector<std::string> strings;
  for (std::size_t id = 0; id < lengths.size() / 4; ++id) {
    const std::size_t length = read_u32(lengths, id);
    if (length > bytes.size()) break;
    strings.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  if (4 * strings.size() != lengths.size() || !bytes.empty()) {
    throw InputError("tokenizer: {}: {} and {} disagree; the file is damaged, make it again", data.kind, bytes_name,
                     lengths_name);
  }
  return strings;
}

}  // namespace quipu
