#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace quipu {

namespace {

constexpr std::uint32_t kShifted = 0x100;

constexpr bool is_printable(std::uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

constexpr std::array<std::uint32_t, 256> kCodes = [] {
  std::array<std::uint32_t, 256> codes{};
  std::uint32_t next = kShifted;
  for (std::uint32_t byte = 0; byte < 256; ++byte) codes[byte] = is_printable(byte) ? byte : next++;
  return codes;
}();

constexpr std::array<int, 0x200> kBytes = [] {
  std::array<int, 0x200> bytes{};
  bytes.fill(-1);
  for (std::uint32_t byte = 0; byte < 256; ++byte) bytes[kCodes[byte]] = static_cast<int>(byte);
  return bytes;
}();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelled) {
  std::string bytes;
  while (!spelled.empty()) {
    const std::size_t size = utf8_size(spelled);
    const std::uint32_t code = size == 0 ? 0xffff : utf8_code(spelled.substr(0, size));
    if (code >= kBytes.size() || kBytes[code] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes[code]);
    spelled.remove_prefix(size);
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelled;
  for (const char c : bytes) append_utf8(spelled, kCodes[static_cast<unsigned char>(c)]);
  return spelled;
}

}  // namespace quipu
