#include "text/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace quipu {
namespace {

/// Bytes of the well-formed character of UTF-8 that `bytes` begins with; 0 where there is none.
std::size_t character_size(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < size) return 0;
  std::uint32_t code = first & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool too_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  return too_long || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

}  // namespace

std::string escape_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t size = character_size(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (const std::size_t at = std::string_view("\t\n\r\\").find(bytes[0]); at != std::string_view::npos) {
      text += '\\';
      text += "tnr\\"[at];
    } else if (size == 0 || first < 0x20 || first == 0x7f) {
      text += fmt::format("\\x{:02x}", first);
    } else {
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

}  // namespace quipu
