#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/tensor_type.h"

namespace quipu {

/// How many bytes of a .npy file tell the length of its header.
inline constexpr std::uint64_t kNpyPrefix = 12;

/// What a .npy file says before its numbers.
struct NpyHeader {
  TensorType type = TensorType::kF32;
  bool fortran = false;  // the first axis fastest
  std::vector<std::int64_t> shape;
};

/// The bytes before the numbers, of the file's first kNpyPrefix. `file` and `entry` are for messages (InputError).
std::uint64_t npy_header_bytes(const std::string& file, const std::string& entry, std::string_view prefix);

/// Reads those bytes: a magic number, a version, a length, and the text
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Only that is understood, nothing evaluated; types other
/// than little-endian floats, integers and bools are refused by name.
NpyHeader parse_npy_header(const std::string& file, const std::string& entry, std::string_view header);

}  // namespace quipu
