#include "text/utf8_stream.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer.h"

namespace quipu {

namespace {

/// Length of the character that `lead` begins; 0 where it begins none of several bytes.
std::size_t sequence_length(unsigned char lead) {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

/// Whether `second` may follow `lead`: no overlong forms, no surrogates, nothing above U+10FFFF.
bool second_byte_fits(unsigned char lead, unsigned char second) {
  const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

}  // namespace

std::size_t unfinished_utf8(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[bytes.size() - back + i]); };
    if ((at(0) & 0xc0) == 0x80) continue;
    if (back >= sequence_length(at(0))) return 0;
    return back == 1 || second_byte_fits(at(0), at(1)) ? back : 0;
  }
  return 0;
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string shown = std::exchange(held_, {});
  shown += bytes;
  const std::size_t held = unfinished_utf8(shown);
  held_ = shown.substr(shown.size() - held);
  shown.resize(shown.size() - held);
  return shown;
}

std::string Utf8Stream::flush() { return std::exchange(held_, {}); }

std::string TokenStream::push(std::int32_t id) {
  std::string text;
  tokenizer_->append_text(previous_, id, text);
  previous_ = id;
  return characters_.push(text);
}

}  // namespace quipu
