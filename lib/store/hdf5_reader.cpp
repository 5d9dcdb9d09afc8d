#include <algorithm>
#include <cstring>
#include <list>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "store/hdf5.h"
#include "store/hdf5_driver.h"
#include "store/hdf5_session.h"
#include "store/hdf5_walk.h"

namespace quipu {

namespace {

constexpr std::size_t kCacheBytes = std::size_t{64} << 20;

/// Gets a stream's end before HDF5 is touched, so that nobody waits for HDF5 while we wait for the stream.
InputFile whole_image(InputFile input, const std::string& wanted) {
  const bool is_hdf5 = input.is_hdf5();
  input.make_seekable();
  if (input.size() == 0) throw InputError("{}: is empty; give a {} file", input.name(), wanted);
  if (!is_hdf5) throw InputError("{}: is not an HDF5 file; give a {} file", input.name(), wanted);
  return input;
}

}  // namespace

struct H5Reader::Impl {
  struct CachedBlock {
    std::string path;
    std::uint64_t block;
    std::vector<std::byte> bytes;
  };

  Impl(InputFile file_in, const std::vector<H5Format>& accepted);
  ~Impl();
  void require(bool success) const;
  void check_format(const std::vector<H5Format>& accepted);
  void check_digest();
  std::string root_text(const char* attribute_name) const;
  const H5Entry& entry(const std::string& path) const;
  hid_t open(const std::string& path);
  void read_slab(const std::string& path, const H5Entry& entry, std::uint64_t first, std::uint64_t rows, std::byte* to);
  void read_block(const std::string& path, const H5Entry& entry, std::uint64_t block, std::byte* to);
  const std::vector<Digest>& block_digests(const std::string& path, std::uint64_t count);
  const std::vector<std::byte>& cached_block(const std::string& path, const H5Entry& entry, std::uint64_t block);
  void read_rows(const std::string& path, const H5Entry& entry, std::uint64_t first, std::uint64_t rows, std::byte* to);

  InputFile input;
  FileAccess access;
  H5Handle file;
  H5Catalogue catalogue;
  std::string format, created_by, created, digest;
  int version = 0;
  std::string open_path;  // of the data set kept open
  H5Handle open_set;
  std::map<std::string, std::vector<Digest>> digests;
  std::list<CachedBlock> cache;  // the last used first
  std::size_t cache_bytes = 0;
};

H5Reader::Impl::Impl(InputFile file_in, const std::vector<H5Format>& accepted) : input(std::move(file_in)) {
  access.descriptor = input.descriptor();
  access.base = input.base();
  const H5Handle access_list(make_access_list(access), H5Pclose);
  require(access_list.is_open());
  file = H5Handle(H5Fopen(input.name().c_str(), H5F_ACC_RDONLY, access_list.id()), H5Fclose);
  require(file.is_open());
  check_format(accepted);
  check_digest();
}

H5Reader::Impl::~Impl() {
  const auto session = hdf5_session();
  open_set.close();
  file.close();
  H5garbage_collect();  // what is kept for the next file is, beside a model, too much
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void H5Reader::Impl::require(bool success) const {
  if (success) return;
  if (access.error != 0) throw InputError("{}: cannot read: {}", input.name(), std::strerror(access.error));
  throw_damaged(input.name(), access.past_end ? "something in it points beyond its end" : hdf5_reason());
}

/// Looks at the root alone: what a newer version holds is not ours to judge.
void H5Reader::Impl::check_format(const std::vector<H5Format>& accepted) {
  if (H5Aexists(file.id(), "format") <= 0 || H5Aexists(file.id(), "version") <= 0) {
    throw InputError("{}: is an HDF5 file, but not of quipu; give a {} file", input.name(), accepted.front().name);
  }
  H5Handle attribute(H5Aopen(file.id(), "format", H5P_DEFAULT), H5Aclose);
  const H5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const H5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  constexpr std::size_t kLongest = 64;
  if (H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0 &&
      H5Tget_size(type.id()) <= kLongest && H5Sget_simple_extent_npoints(space.id()) == 1) {
    format.assign(H5Tget_size(type.id()), '\0');
    require(H5Aread(attribute.id(), type.id(), format.data()) >= 0);
    format.erase(format.find_last_not_of('\0') + 1);
  }
  const auto wanted = std::ranges::find(accepted, format, &H5Format::name);
  if (wanted == accepted.end()) {
    const bool ours = format.starts_with("quipu-") &&
                      std::ranges::all_of(format, [](char c) { return c == '-' || (c >= 'a' && c <= 'z'); });
    throw InputError("{}: is a {} file, not a {} file", input.name(), ours ? format : "foreign", accepted.front().name);
  }
  attribute = H5Handle(H5Aopen(file.id(), "version", H5P_DEFAULT), H5Aclose);
  const H5Handle points(H5Aget_space(attribute.id()), H5Sclose);
  std::int64_t number = 0;
  require(H5Sget_simple_extent_npoints(points.id()) == 1);
  require(H5Aread(attribute.id(), H5T_NATIVE_INT64, &number) >= 0);
  if (number > wanted->version) {
    throw InputError("{}: is version {} of {}, this build reads up to {}; use a newer quipu", input.name(), number,
                     format, wanted->version);
  }
  if (number < 1) throw_damaged(input.name(), fmt::format("its version is {}", number));
  version = static_cast<int>(number);
}

void H5Reader::Impl::check_digest() {
  try {
    catalogue = walk_file(file.id(), input.name(), input.size());
  } catch (const InputError&) {
    require(!access.past_end && access.error == 0);  // says more
    throw;
  }
  created_by = root_text("created_by");
  created = root_text("created");
  digest = root_text(kH5DigestAttribute);
  const std::string found = catalogue_digest(catalogue).hex();
  if (found != digest)
    throw_damaged(input.name(), fmt::format("its digest is {}, its contents give {}", digest, found));
}

std::string H5Reader::Impl::root_text(const char* attribute_name) const {
  const auto& attributes = catalogue.at("/").attributes;
  const auto at = attributes.find(attribute_name);
  const auto* text = at == attributes.end() ? nullptr : std::get_if<std::string>(&at->second);
  if (text == nullptr) throw_damaged(input.name(), fmt::format("it has no {}", attribute_name));
  return *text;
}

const H5Entry& H5Reader::Impl::entry(const std::string& path) const {
  const auto at = catalogue.find(path);
  if (at == catalogue.end()) throw InputError("{}: lacks {}", input.name(), path);
  return at->second;
}

hid_t H5Reader::Impl::open(const std::string& path) {
  if (!open_set.is_open() || open_path != path) {
    open_set.close();
    open_set = H5Handle(H5Dopen2(file.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    open_path = path;
    require(open_set.is_open());
  }
  return open_set.id();
}

/// Reads rows unchecked by any digest.
void H5Reader::Impl::read_slab(const std::string& path, const H5Entry& at, std::uint64_t first, std::uint64_t rows,
                               std::byte* to) {
  if (at.bytes() == 0 || rows == 0) return;
  const hid_t set = open(path);
  check_chunks(set, input.name(), at, first, rows);
  const auto [in_file, in_memory] = row_spaces(set, at.shape, first, rows);
  require(in_file.is_open() && in_memory.is_open());
  require(H5Dread(set, stored_type(*at.type), in_memory.id(), in_file.id(), H5P_DEFAULT, to) >= 0);
}

const std::vector<Digest>& H5Reader::Impl::block_digests(const std::string& path, std::uint64_t count) {
  const auto known = digests.find(path);
  if (known != digests.end()) return known->second;
  const std::string place = kH5DigestsGroup + path;
  const H5Entry& list = entry(place);
  if (list.type != ElementType::kUInt64 || list.shape != H5Shape{count, 2}) {
    throw_damaged(input.name(), fmt::format("{} does not fit {}", place, path));
  }
  std::vector<Digest> found(count);
  read_slab(place, list, 0, count, reinterpret_cast<std::byte*>(found.data()));
  const auto& attributes = entry(path).attributes;
  const auto expected = attributes.find(kH5DigestAttribute);
  if (expected == attributes.end() || expected->second != H5Value(digest_of_blocks(found).hex())) {
    throw_damaged(input.name(), fmt::format("the digests of {} are wrong", path));
  }
  return digests[path] = std::move(found);
}

void H5Reader::Impl::read_block(const std::string& path, const H5Entry& at, std::uint64_t block, std::byte* to) {
  const H5Blocks blocks = blocks_of(*at.type, at.shape);
  read_slab(path, at, blocks.first_row(block), blocks.rows_in(block), to);
  const Digest found = digest_of(std::span(to, blocks.rows_in(block) * blocks.row_bytes));
  bool right = false;
  if (blocks.count() > 1) {
    right = block_digests(path, blocks.count())[block] == found;
  } else {
    const auto expected = at.attributes.find(kH5DigestAttribute);
    right = expected != at.attributes.end() && expected->second == H5Value(digest_of_blocks({found}).hex());
  }
  if (!right) throw_damaged(input.name(), fmt::format("the data of {} does not fit its digest", path));
}

const std::vector<std::byte>& H5Reader::Impl::cached_block(const std::string& path, const H5Entry& at,
                                                           std::uint64_t block) {
  const auto found =
      std::ranges::find_if(cache, [&](const CachedBlock& held) { return held.block == block && held.path == path; });
  if (found != cache.end()) {
    cache.splice(cache.begin(), cache, found);
    return cache.front().bytes;
  }
  const H5Blocks blocks = blocks_of(*at.type, at.shape);
  std::vector<std::byte> bytes(blocks.rows_in(block) * blocks.row_bytes);
  read_block(path, at, block, bytes.data());
  cache_bytes += bytes.size();
  cache.push_front({path, block, std::move(bytes)});
  while (cache.size() > 1 && cache_bytes > kCacheBytes) {
    cache_bytes -= cache.back().bytes.size();
    cache.pop_back();
  }
  return cache.front().bytes;
}

void H5Reader::Impl::read_rows(const std::string& path, const H5Entry& at, std::uint64_t first, std::uint64_t rows,
                               std::byte* to) {
  const H5Blocks blocks = blocks_of(*at.type, at.shape);
  if (blocks.count() == 0) return;
  const std::uint64_t end = first + rows;
  while (first < end) {
    const std::uint64_t block = first / blocks.rows_per_block;
    const std::uint64_t begin = blocks.first_row(block);
    const std::uint64_t stop = std::min(end, begin + blocks.rows_in(block));
    const std::uint64_t bytes = (stop - first) * blocks.row_bytes;
    if (first == begin && stop == begin + blocks.rows_in(block)) {
      read_block(path, at, block, to);
    } else {
      std::memcpy(to, cached_block(path, at, block).data() + (first - begin) * blocks.row_bytes, bytes);
    }
    to += bytes;
    first = stop;
  }
}

H5Reader::H5Reader(const std::string& path, const std::vector<H5Format>& accepted)
    : H5Reader(InputFile(path), accepted) {}

H5Reader::H5Reader(InputFile input, const std::vector<H5Format>& accepted) {
  input = whole_image(std::move(input), accepted.front().name);
  const auto session = hdf5_session();
  impl_ = std::make_unique<Impl>(std::move(input), accepted);
}

H5Reader::~H5Reader() = default;

const std::string& H5Reader::name() const { return impl_->input.name(); }
const std::string& H5Reader::format() const { return impl_->format; }
int H5Reader::version() const { return impl_->version; }
const std::string& H5Reader::created_by() const { return impl_->created_by; }
const std::string& H5Reader::created() const { return impl_->created; }
const std::string& H5Reader::digest() const { return impl_->digest; }
std::uint64_t H5Reader::file_bytes() const { return impl_->input.size(); }
const H5Catalogue& H5Reader::catalogue() const { return impl_->catalogue; }
const H5Entry& H5Reader::entry(const std::string& path) const { return impl_->entry(path); }

std::uint64_t H5Reader::elements(const std::string& path, ElementType type) const {
  const H5Entry& at = entry(path);
  if (at.type != type) {
    throw InputError("{}: {} is {}, not {}", name(), path, at.type ? element_name(*at.type) : "a group",
                     element_name(type));
  }
  return at.elements();
}

void H5Reader::read_bytes(const std::string& path, ElementType type, std::span<std::byte> data) const {
  const std::uint64_t n = elements(path, type);
  if (n * element_bytes(type) != data.size()) {
    throw InputError("{}: {} has {} elements, not {}", name(), path, n, data.size() / element_bytes(type));
  }
  const auto session = hdf5_session();
  const H5Entry& at = entry(path);
  impl_->read_rows(path, at, 0, at.shape.empty() ? 1 : at.shape[0], data.data());
}

void H5Reader::read_row_bytes(const std::string& path, ElementType type, std::uint64_t first,
                              std::span<std::byte> data) const {
  elements(path, type);
  const H5Entry& at = entry(path);
  const H5Blocks blocks = blocks_of(type, at.shape);
  const std::uint64_t rows = blocks.row_bytes == 0 ? 0 : data.size() / blocks.row_bytes;
  if (rows * blocks.row_bytes != data.size()) {
    throw ShapeError("{}: {} has rows of {} bytes, asked for {}", name(), path, blocks.row_bytes, data.size());
  }
  if (first > blocks.rows || rows > blocks.rows - first) {
    throw ShapeError("{}: {} has {} rows, asked for {} to {}", name(), path, blocks.rows, first, first + rows);
  }
  const auto session = hdf5_session();
  impl_->read_rows(path, at, first, rows, data.data());
}

void H5Reader::verify() const {
  const auto session = hdf5_session();
  std::vector<std::byte> bytes;
  for (const auto& [path, at] : impl_->catalogue) {
    if (at.is_group() || is_below(path, kH5DigestsGroup)) continue;
    const H5Blocks blocks = blocks_of(*at.type, at.shape);
    for (std::uint64_t i = 0; i < blocks.count(); ++i) {
      bytes.resize(blocks.rows_in(i) * blocks.row_bytes);
      impl_->read_block(path, at, i, bytes.data());
    }
  }
}

}  // namespace quipu
