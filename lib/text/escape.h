#pragma once
#include <string>
#include <string_view>

namespace quipu {

/// Bytes as text that fits a line and a column: whole characters of UTF-8 as they are, but \t, \n, \r and \\ for tab,
/// newline, carriage return and backslash, and \xHH for other control bytes and bytes that are no UTF-8.
std::string escape_text(std::string_view bytes);

}  // namespace quipu
