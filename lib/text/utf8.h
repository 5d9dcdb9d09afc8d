#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quipu {

/// Bytes (1 to 4) of the well-formed UTF-8 character that `text` begins with; 0 where there is none: no overlong forms,
/// no surrogates, nothing above U+10FFFF.
std::size_t utf8_size(std::string_view text);

/// Length of the longest beginning of `text` that is well-formed UTF-8.
std::size_t valid_utf8(std::string_view text);

/// The code point of a well-formed character.
std::uint32_t utf8_code(std::string_view character);

/// Appends a code point (at most U+10FFFF, no surrogate).
void append_utf8(std::string& text, std::uint32_t code);

}  // namespace quipu
