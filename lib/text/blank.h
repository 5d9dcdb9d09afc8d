#pragma once

namespace quipu {

/// The bytes that separate words everywhere in quipu: space, \t, \n, \v, \f and \r, as in the C locale. Blanks of
/// Unicode (U+00A0, U+3000, ...) are part of words, so that counts do not depend on a locale.
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace quipu
