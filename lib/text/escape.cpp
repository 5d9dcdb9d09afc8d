#include "text/escape.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.h"

namespace quipu {

std::string escape_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t size = utf8_size(bytes);
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
