#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.h"

namespace quipu {

enum class ElementType : std::uint8_t { kFloat32 = 1, kFloat64, kUInt8, kUInt16, kUInt32, kInt32, kInt64, kUInt64 };

/// Bytes of an element, and its name (`float32`).
std::size_t element_bytes(ElementType type);
const char* element_name(ElementType type);

template <typename T>
constexpr ElementType element_type_of();

template <>
constexpr ElementType element_type_of<float>() {
  return ElementType::kFloat32;
}
template <>
constexpr ElementType element_type_of<double>() {
  return ElementType::kFloat64;
}
template <>
constexpr ElementType element_type_of<std::uint8_t>() {
  return ElementType::kUInt8;
}
template <>
constexpr ElementType element_type_of<std::uint16_t>() {
  return ElementType::kUInt16;
}
template <>
constexpr ElementType element_type_of<std::uint32_t>() {
  return ElementType::kUInt32;
}
template <>
constexpr ElementType element_type_of<std::int32_t>() {
  return ElementType::kInt32;
}
template <>
constexpr ElementType element_type_of<std::int64_t>() {
  return ElementType::kInt64;
}
template <>
constexpr ElementType element_type_of<std::uint64_t>() {
  return ElementType::kUInt64;
}

using H5Shape = std::vector<std::uint64_t>;
using H5Value = std::variant<std::int64_t, std::uint64_t, double, std::string>;

/// A group, or a data set with its type and shape (the empty shape is a single value).
struct H5Entry {
  std::optional<ElementType> type;  // nothing: a group
  H5Shape shape;
  std::map<std::string, H5Value> attributes;

  bool is_group() const { return !type; }
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
};

/// What stands in a file, by absolute path: "/" is the root, "/train/tokens" a data set.
using H5Catalogue = std::map<std::string, H5Entry>;

/// How a data set is cut for digests: into blocks of whole rows (a row is one step of the first axis) of about 1 MiB,
/// at least one row each.
struct H5Blocks {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t rows_per_block = 1;

  std::uint64_t count() const { return rows == 0 || row_bytes == 0 ? 0 : (rows - 1) / rows_per_block + 1; }
  std::uint64_t first_row(std::uint64_t block) const { return block * rows_per_block; }
  std::uint64_t rows_in(std::uint64_t block) const { return std::min(rows_per_block, rows - first_row(block)); }
};

inline constexpr std::uint64_t kH5BlockBytes = std::uint64_t{1} << 20;
inline constexpr const char* kH5DigestAttribute = "digest";
inline constexpr const char* kH5DigestsGroup = "/digests";

H5Blocks blocks_of(ElementType type, const H5Shape& shape);

/// Digests form a tree. Each data set has an attribute `digest`, taken over the digests of its blocks; where there are
/// several blocks, their digests stand in `/digests/<path>` (uint64 [blocks,2]), so that a part can be checked when it
/// is read. The root's attribute `digest` is taken over all names, types, shapes and attributes, the data's digests
/// among them.
Digest digest_of_blocks(const std::vector<Digest>& blocks);

/// The digest that a data set of this content has as its attribute.
Digest data_digest(ElementType type, const H5Shape& shape, std::span<const std::byte> data);

/// The digest of the whole file, but for the root's own attribute `digest`.
Digest catalogue_digest(const H5Catalogue& catalogue);

/// The digest of what stands below a group, by path relative to it. The attribute `index` (an order) does not count.
Digest subtree_digest(const H5Catalogue& catalogue, const std::string& group);

/// Whether a path stands below a group (or is it).
bool is_below(std::string_view path, std::string_view group);

}  // namespace quipu
