#include <cstring>
#include <functional>
#include <numeric>

#include "store/hdf5.h"
#include "store/hdf5_driver.h"
#include "store/hdf5_session.h"

namespace quipu {

namespace {

constexpr std::size_t kMostAttributeBytes = 4096;
constexpr std::size_t kMostAxes = 32;

std::uint64_t product(const H5Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

/// A chunk is a run of neighbours in row-major order of at most 1 MiB: whole rows where they fit, else part of one.
std::vector<hsize_t> chunk_of(ElementType type, const H5Shape& shape) {
  std::vector<hsize_t> chunk(shape.size(), 1);
  std::uint64_t room = kH5BlockBytes / element_bytes(type);
  for (std::size_t i = shape.size(); i-- > 0 && room > 0;) {
    chunk[i] = std::min<std::uint64_t>(shape[i], room);
    room = chunk[i] < shape[i] ? 0 : room / chunk[i];
  }
  return chunk;
}

H5Handle make_space(const H5Shape& shape, bool grows) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  std::vector<hsize_t> most = extent;
  if (grows) most[0] = H5S_UNLIMITED;
  return {H5Screate_simple(static_cast<int>(extent.size()), extent.data(), most.data()), H5Sclose};
}

}  // namespace

struct H5Writer::Impl {
  Impl(const std::string& path, const H5Format& kind);
  ~Impl();
  void require(bool success, const char* doing);
  void make_group(const std::string& path);
  void make_parents(const std::string& path);
  void add_entry(const std::string& path, H5Entry entry);
  H5Handle create(const std::string& path, ElementType type, const H5Shape& shape, bool grows);
  void write_rows(const H5Handle& set, ElementType type, const H5Shape& shape, std::uint64_t first, std::uint64_t rows,
                  std::span<const std::byte> data);
  void set_attribute(const H5Handle& object, const std::string& path, const std::string& name, const H5Value& value);
  void close_data_set(const H5Handle& set, const std::string& path, const std::vector<Digest>& blocks);
  void write_block_digests();
  void finish_file();

  H5Format format;
  OutputFile output;
  FileAccess access;
  H5Handle file;
  H5Catalogue catalogue;
  std::map<std::string, std::vector<Digest>> blocks;  // of the data sets that have several
  std::vector<std::unique_ptr<H5Stream>> streams;
};

struct H5Stream::Impl {
  H5Writer::Impl* writer;
  std::string path;
  ElementType type;
  H5Shape shape;  // [rows written so far, row...]
  H5Blocks blocks;
  std::vector<std::byte> held;  // not yet written, less than a block
  std::vector<Digest> digests;
  H5Handle set;
  bool finished = false;

  void flush();
};

H5Writer::Impl::Impl(const std::string& path, const H5Format& kind)
    : format(kind), output(path, OutputFile::Access::random) {
  if (output.is_terminal()) throw UsageError("{}: is a terminal; give a file, or pipe it somewhere", output.name());
  access.descriptor = output.descriptor();
  access.writable = true;
  const auto session = hdf5_session();
  const H5Handle access_list(make_access_list(access), H5Pclose);
  const H5Handle create_list(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  require(access_list.is_open() && H5Pset_obj_track_times(create_list.id(), false) >= 0, "prepare");
  H5Handle made(H5Fcreate(output.name().c_str(), H5F_ACC_TRUNC, create_list.id(), access_list.id()), H5Fclose);
  require(made.is_open(), "create");
  file = std::move(made);
  catalogue["/"] = {};
}

H5Writer::Impl::~Impl() {
  const auto session = hdf5_session();
  streams.clear();
  file.close();
}

void H5Writer::Impl::require(bool success, const char* doing) {
  if (access.error != 0) throw InputError("{}: cannot write: {}", output.name(), std::strerror(access.error));
  if (!success) throw InputError("{}: cannot {} it: {}", output.name(), doing, hdf5_reason());
}

void H5Writer::Impl::add_entry(const std::string& path, H5Entry entry) {
  if (!path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string::npos ||
      (path + "/").find("/./") != std::string::npos) {
    throw InternalError("{}: '{}' cannot name anything in a file", output.name(), path);
  }
  if (!catalogue.emplace(path, std::move(entry)).second) {
    throw InternalError("{}: {} is written twice", output.name(), path);
  }
}

void H5Writer::Impl::make_group(const std::string& path) {
  if (const auto at = catalogue.find(path); at != catalogue.end()) {
    if (!at->second.is_group()) throw InternalError("{}: {} is no group", output.name(), path);
    return;
  }
  make_parents(path);
  add_entry(path, {});
  const H5Handle list(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  require(H5Pset_obj_track_times(list.id(), false) >= 0, "prepare");
  const H5Handle made(H5Gcreate2(file.id(), path.c_str(), H5P_DEFAULT, list.id(), H5P_DEFAULT), H5Gclose);
  require(made.is_open(), "extend");
}

void H5Writer::Impl::make_parents(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) make_group(path.substr(0, slash));
}

H5Handle H5Writer::Impl::create(const std::string& path, ElementType type, const H5Shape& shape, bool grows) {
  if (shape.size() > kMostAxes)
    throw ShapeError("{}: {} has {} axes, at most 32 fit", output.name(), path, shape.size());
  make_parents(path);
  add_entry(path, {type, shape, {}});
  const H5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  require(H5Pset_obj_track_times(list.id(), false) >= 0, "prepare");
  if (!shape.empty() && product(shape) > 0) {
    const std::vector<hsize_t> chunk = chunk_of(type, shape);
    require(H5Pset_chunk(list.id(), static_cast<int>(chunk.size()), chunk.data()) >= 0, "prepare");
    require(H5Pset_fletcher32(list.id()) >= 0, "prepare");
  }
  const H5Handle space = make_space(shape, grows);
  H5Handle set(H5Dcreate2(file.id(), path.c_str(), stored_type(type), space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT),
               H5Dclose);
  require(set.is_open(), "extend");
  return set;
}

void H5Writer::Impl::write_rows(const H5Handle& set, ElementType type, const H5Shape& shape, std::uint64_t first,
                                std::uint64_t rows, std::span<const std::byte> data) {
  const auto [in_file, in_memory] = row_spaces(set.id(), shape, first, rows);
  require(in_file.is_open() && in_memory.is_open(), "prepare");
  require(H5Dwrite(set.id(), stored_type(type), in_memory.id(), in_file.id(), H5P_DEFAULT, data.data()) >= 0, "write");
}

void H5Writer::Impl::set_attribute(const H5Handle& object, const std::string& path, const std::string& name,
                                   const H5Value& value) {
  const H5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Handle type;
  std::string padded;
  const void* bytes = std::visit([](const auto& v) { return static_cast<const void*>(&v); }, value);
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (text->size() > kMostAttributeBytes) {
      throw InternalError("{}: attribute {} of {} has {} bytes", output.name(), name, path, text->size());
    }
    padded = text->empty() ? std::string(1, '\0') : *text;
    bytes = padded.data();
    type = H5Handle(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), padded.size());
    H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
  } else if (std::holds_alternative<double>(value)) {
    type = H5Handle(H5Tcopy(H5T_IEEE_F64LE), H5Tclose);
  } else {
    type = H5Handle(H5Tcopy(std::holds_alternative<std::int64_t>(value) ? H5T_STD_I64LE : H5T_STD_U64LE), H5Tclose);
  }
  const H5Handle made(H5Acreate2(object.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  require(made.is_open() && H5Awrite(made.id(), type.id(), bytes) >= 0, "extend");
  catalogue.at(path).attributes[name] = value;
}

void H5Writer::Impl::close_data_set(const H5Handle& set, const std::string& path, const std::vector<Digest>& digests) {
  set_attribute(set, path, kH5DigestAttribute, digest_of_blocks(digests).hex());
  if (digests.size() > 1) blocks[path] = digests;
}

void H5Writer::Impl::write_block_digests() {
  for (const auto& [path, digests] : blocks) {
    const std::string place = kH5DigestsGroup + path;
    const H5Shape shape = {digests.size(), 2};
    const H5Handle set = create(place, ElementType::kUInt64, shape, false);
    write_rows(set, ElementType::kUInt64, shape, 0, digests.size(), std::as_bytes(std::span(digests)));
  }
}

H5Writer::H5Writer(const std::string& path, const H5Format& format, const std::string& created) {
  impl_ = std::make_unique<Impl>(path, format);
  attribute("/", "format", format.name);
  attribute("/", "version", std::int64_t{format.version});
  attribute("/", "created_by", "quipu " QUIPU_VERSION);
  attribute("/", "created", created);
}

H5Writer::~H5Writer() = default;

void H5Writer::group(const std::string& path) {
  const auto session = hdf5_session();
  impl_->make_group(path);
}

void H5Writer::write_bytes(const std::string& path, ElementType type, const H5Shape& shape,
                           std::span<const std::byte> data) {
  const auto session = hdf5_session();
  if (data.size() != product(shape) * element_bytes(type)) {
    throw ShapeError("{}: {} has {} elements, its shape asks for {}", impl_->output.name(), path,
                     data.size() / element_bytes(type), product(shape));
  }
  const H5Handle set = impl_->create(path, type, shape, false);
  const H5Blocks blocks = blocks_of(type, shape);
  std::vector<Digest> digests;
  for (std::uint64_t i = 0; i < blocks.count(); ++i) {
    const auto part = data.subspan(blocks.first_row(i) * blocks.row_bytes, blocks.rows_in(i) * blocks.row_bytes);
    impl_->write_rows(set, type, shape, blocks.first_row(i), blocks.rows_in(i), part);
    digests.push_back(digest_of(part));
  }
  impl_->close_data_set(set, path, digests);
}

void H5Writer::write_text(const std::string& path, std::string_view text) {
  write_bytes(path, ElementType::kUInt8, {text.size()}, std::as_bytes(std::span(text)));
}

void H5Writer::attribute(const std::string& path, const std::string& name, const H5Value& value) {
  const auto session = hdf5_session();
  if (!has(path)) throw InternalError("{}: {} is not written yet", impl_->output.name(), path);
  const H5Handle object(H5Oopen(impl_->file.id(), path.c_str(), H5P_DEFAULT), H5Oclose);
  impl_->require(object.is_open(), "extend");
  impl_->set_attribute(object, path, name, value);
}

const H5Catalogue& H5Writer::catalogue() const { return impl_->catalogue; }

void H5Writer::Impl::finish_file() {
  const auto session = hdf5_session();
  for (const auto& stream : streams) stream->finish();
  write_block_digests();
  {
    const H5Handle root(H5Gopen2(file.id(), "/", H5P_DEFAULT), H5Gclose);
    require(root.is_open(), "extend");
    set_attribute(root, "/", kH5DigestAttribute, catalogue_digest(catalogue).hex());
  }
  const bool closed = file.close() >= 0;
  require(closed, "close");
}

void H5Writer::commit() {
  impl_->finish_file();
  impl_->output.commit();
}

H5Stream& H5Writer::stream(const std::string& path, ElementType type, const H5Shape& row) {
  H5Shape shape = {0};
  shape.insert(shape.end(), row.begin(), row.end());
  auto state = std::make_unique<H5Stream::Impl>();
  state->writer = impl_.get();
  state->path = path;
  state->type = type;
  state->shape = shape;
  state->blocks = blocks_of(type, shape);
  if (state->blocks.row_bytes == 0) throw ShapeError("{}: the rows of {} are empty", impl_->output.name(), path);
  impl_->streams.push_back(std::unique_ptr<H5Stream>(new H5Stream(std::move(state))));
  return *impl_->streams.back();
}

void H5Writer::finish(H5Stream& stream) { stream.finish(); }

H5Stream::H5Stream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
H5Stream::~H5Stream() = default;

std::uint64_t H5Stream::rows() const { return impl_->shape[0] + impl_->held.size() / impl_->blocks.row_bytes; }

/// Writes the rows held: the data set is made with the first of them, when it is known whether they fill a chunk.
void H5Stream::Impl::flush() {
  const std::uint64_t rows = held.size() / blocks.row_bytes;
  const std::uint64_t first = shape[0];
  shape[0] += rows;
  if (!set.is_open()) {
    set = writer->create(path, type, shape, rows == blocks.rows_per_block);
  } else if (rows > 0) {
    const std::vector<hsize_t> extent(shape.begin(), shape.end());
    writer->require(H5Dset_extent(set.id(), extent.data()) >= 0, "extend");
    writer->catalogue.at(path).shape = shape;
  }
  if (rows == 0) return;
  writer->write_rows(set, type, shape, first, rows, held);
  digests.push_back(digest_of(held));
  held.clear();
}

void H5Stream::append_bytes(ElementType type, std::span<const std::byte> data) {
  const auto session = hdf5_session();
  Impl& s = *impl_;
  if (type != s.type || s.finished || data.size() % s.blocks.row_bytes != 0) {
    throw InternalError("{}: {} takes whole rows of {}, {} bytes each", s.writer->output.name(), s.path,
                        element_name(s.type), s.blocks.row_bytes);
  }
  const std::size_t block_bytes = s.blocks.rows_per_block * s.blocks.row_bytes;
  while (!data.empty()) {
    const std::size_t taken = std::min(data.size(), block_bytes - s.held.size());
    s.held.insert(s.held.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(taken));
    data = data.subspan(taken);
    if (s.held.size() == block_bytes) s.flush();
  }
}

void H5Stream::finish() {
  const auto session = hdf5_session();
  Impl& s = *impl_;
  if (s.finished) return;
  s.flush();
  s.writer->close_data_set(s.set, s.path, s.digests);
  s.set.close();
  s.finished = true;
}

}  // namespace quipu
