#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace quipu {

/// The bytes that a token of a byte-level vocabulary is spelled with: GPT-2 and its like write each byte as a printable
/// character (of Latin-1 where it is one there, else from U+0100 on). Nothing where `spelled` has another character.
std::optional<std::string> bytes_of_spelling(std::string_view spelled);

/// The other way round.
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace quipu
