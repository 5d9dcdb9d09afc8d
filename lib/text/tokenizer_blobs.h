#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_data.h"

namespace quipu {

/// Numbers and strings as the blobs of TokenizerData hold them. What cannot be read is an InputError.

void append_u32(std::string& bytes, std::uint32_t value);
std::uint32_t read_u32(std::string_view bytes, std::size_t index);

/// The bytes of the blob `name`. InputError where there is none.
std::string_view find_blob(const TokenizerData& data, std::string_view name);

/// The blob `name` as numbers of 32 bits. InputError where its size is no multiple of 4 `columns`.
std::vector<std::uint32_t> read_numbers(const TokenizerData& data, std::string_view name, std::size_t columns);

/// Strings as two blobs, their bytes and their lengths.
void pack_strings(std::span<const std::string> strings, std::string bytes_name, std::string lengths_name,
                  TokenizerData& data);
std::vector<std::string> unpack_strings(const TokenizerData& data, std::string_view bytes_name,
                                        std::string_view lengths_name);

}  // namespace quipu
