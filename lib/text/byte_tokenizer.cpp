#include "text/byte_tokenizer.h"

#include <algorithm>
#include <array>

namespace quipu {

namespace {

constexpr std::array<char, 256> kBytes = [] {
  std::array<char, 256> bytes{};
  for (int i = 0; i < 256; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(i);
  return bytes;
}();

}  // namespace

std::size_t ByteTokenizer::encode_some(std::string_view text, TextPart /*part*/,
                                       std::vector<std::int32_t>& tokens) const {
  const std::size_t before = tokens.size();
  tokens.resize(before + text.size());
  std::transform(text.begin(), text.end(), tokens.begin() + static_cast<std::ptrdiff_t>(before),
                 [](char c) { return static_cast<std::int32_t>(static_cast<unsigned char>(c)); });
  return text.size();
}

std::size_t ByteTokenizer::cut_after(std::string_view text, std::size_t from) const {
  return std::min(from, text.size());
}

std::string_view ByteTokenizer::token_bytes(std::int32_t id) const {
  require_in_vocabulary(id);
  return {&kBytes[static_cast<std::size_t>(id)], 1};
}

}  // namespace quipu
