#include "store/hdf5_catalogue.h"

#include <algorithm>
#include <array>

namespace quipu {

namespace {

struct ElementFacts {
  std::size_t bytes;
  const char* name;
};

const ElementFacts& facts_of(ElementType type) {
  static constexpr std::array<ElementFacts, 9> kFacts = {{{0, "none"},
                                                          {4, "float32"},
                                                          {8, "float64"},
                                                          {1, "uint8"},
                                                          {2, "uint16"},
                                                          {4, "uint32"},
                                                          {4, "int32"},
                                                          {8, "int64"},
                                                          {8, "uint64"}}};
  return kFacts[static_cast<std::size_t>(type)];
}

void add_text(Digester& digester, std::string_view text) {
  digester.update(std::uint64_t{text.size()});
  digester.update(text);
}

void add_value(Digester& digester, const H5Value& value) {
  digester.update(std::uint64_t{value.index()});
  if (const auto* text = std::get_if<std::string>(&value)) {
    add_text(digester, *text);
  } else if (const auto* real = std::get_if<double>(&value)) {
    digester.update(std::as_bytes(std::span(real, 1)));
  } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
    digester.update(static_cast<std::uint64_t>(*number));
  } else {
    digester.update(std::get<std::uint64_t>(value));
  }
}

/// Adds an entry; an attribute of the name `left_out` does not count.
void add_entry(Digester& digester, std::string_view path, const H5Entry& entry, std::string_view left_out) {
  add_text(digester, path);
  digester.update(static_cast<std::uint64_t>(entry.type.value_or(ElementType{})));
  digester.update(std::uint64_t{entry.shape.size()});
  for (const std::uint64_t extent : entry.shape) digester.update(extent);
  for (const auto& [name, value] : entry.attributes) {
    if (name == left_out) continue;
    add_text(digester, name);
    add_value(digester, value);
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) { return facts_of(type).bytes; }
const char* element_name(ElementType type) { return facts_of(type).name; }

std::uint64_t H5Entry::elements() const {
  std::uint64_t n = type ? 1 : 0;
  for (const std::uint64_t extent : shape) n *= extent;
  return n;
}

std::uint64_t H5Entry::bytes() const { return type ? elements() * element_bytes(*type) : 0; }

H5Blocks blocks_of(ElementType type, const H5Shape& shape) {
  H5Blocks blocks;
  blocks.rows = shape.empty() ? 1 : shape[0];
  blocks.row_bytes = element_bytes(type);
  for (std::size_t i = 1; i < shape.size(); ++i) blocks.row_bytes *= shape[i];
  if (blocks.row_bytes > 0) blocks.rows_per_block = std::max<std::uint64_t>(1, kH5BlockBytes / blocks.row_bytes);
  return blocks;
}

Digest digest_of_blocks(const std::vector<Digest>& blocks) {
  Digester digester;
  for (const Digest& block : blocks) digester.update(block);
  return digester.finish();
}

Digest data_digest(ElementType type, const H5Shape& shape, std::span<const std::byte> data) {
  const H5Blocks blocks = blocks_of(type, shape);
  std::vector<Digest> digests;
  for (std::uint64_t i = 0; i < blocks.count(); ++i) {
    digests.push_back(
        digest_of(data.subspan(blocks.first_row(i) * blocks.row_bytes, blocks.rows_in(i) * blocks.row_bytes)));
  }
  return digest_of_blocks(digests);
}

Digest catalogue_digest(const H5Catalogue& catalogue) {
  Digester digester;
  for (const auto& [path, entry] : catalogue) add_entry(digester, path, entry, path == "/" ? kH5DigestAttribute : "");
  return digester.finish();
}

Digest subtree_digest(const H5Catalogue& catalogue, const std::string& group) {
  Digester digester;
  for (auto at = catalogue.lower_bound(group); at != catalogue.end(); ++at) {
    const std::string_view path = at->first;
    if (!path.starts_with(group)) break;
    if (path != group && is_below(path, group) && !at->second.is_group()) {
      add_entry(digester, path.substr(group.size()), at->second, "index");
    }
  }
  return digester.finish();
}

bool is_below(std::string_view path, std::string_view group) {
  return path.starts_with(group) && (path.size() == group.size() || group == "/" || path[group.size()] == '/');
}

}  // namespace quipu
