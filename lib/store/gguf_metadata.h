#pragma once
#include <cstdint>
#include <string>

#include "store/byte_cursor.h"
#include "store/source_metadata.h"

namespace quipu {

/// Reads `count` key-values of a GGUF file (key, 32-bit type, value) into `metadata`. Lists stay in the file's bytes.
/// Whole numbers that no 64-bit signed integer holds become their decimal digits. Throws InputError naming `where`.
void read_gguf_values(ByteCursor& cursor, std::uint64_t count, const std::string& where, SourceMetadata& metadata);

}  // namespace quipu
