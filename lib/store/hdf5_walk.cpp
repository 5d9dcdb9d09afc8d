#include "store/hdf5_walk.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace quipu {

namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << 20;
constexpr std::size_t kMostAttributeBytes = std::size_t{1} << 16;
constexpr int kDeepest = 32;
constexpr std::uint64_t kMostDeflated = 1040;  // deflate shrinks at most this many times

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* names) {
  // A link that is not hard would lead elsewhere: it is listed with an empty name.
  static_cast<std::vector<std::string>*>(names)->emplace_back(info->type == H5L_TYPE_HARD ? name : "");
  return 0;
}

herr_t collect_attribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

class Walk {
 public:
  Walk(hid_t file, const std::string& name, std::uint64_t file_bytes)
      : file_(file), name_(name), file_bytes_(file_bytes) {}

  H5Catalogue list() {
    add_group(H5Handle(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose), "/", 0);
    return std::move(catalogue_);
  }

 private:
  void require(bool success) const {
    if (!success) throw_damaged(name_, hdf5_reason());
  }

  void add_group(const H5Handle& group, const std::string& path, int depth) {
    require(group.is_open());
    if (depth > kDeepest || catalogue_.size() > kMostEntries) throw_damaged(name_, "its groups are endless");
    catalogue_[path].attributes = attributes(group.id());
    std::vector<std::string> names;
    require(H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_link, &names) >= 0);
    for (const std::string& child : names) {
      const std::string child_path = (path == "/" ? "/" : path + "/") + child;
      if (child.empty()) throw_damaged(name_, fmt::format("{} holds a link that leads elsewhere", path));
      H5Handle object(H5Oopen(group.id(), child.c_str(), H5P_DEFAULT), H5Oclose);
      require(object.is_open());
      const H5I_type_t kind = H5Iget_type(object.id());
      if (kind == H5I_GROUP) {
        add_group(object, child_path, depth + 1);
      } else if (kind == H5I_DATASET) {
        catalogue_[child_path] = data_set(object.id(), child_path);
      } else {
        throw_damaged(name_, fmt::format("{} is neither a group nor a data set", child_path));
      }
    }
  }

  H5Entry data_set(hid_t set, const std::string& path) const {
    H5Entry entry;
    const H5Handle type(H5Dget_type(set), H5Tclose);
    const H5Handle space(H5Dget_space(set), H5Sclose);
    require(type.is_open() && space.is_open());
    for (int code = 1; code <= static_cast<int>(ElementType::kUInt64); ++code) {
      if (H5Tequal(type.id(), stored_type(static_cast<ElementType>(code))) > 0) entry.type = ElementType(code);
    }
    if (!entry.type) throw_damaged(name_, fmt::format("{} has a type that quipu does not write", path));
    const int axes = H5Sget_simple_extent_ndims(space.id());
    require(axes >= 0 && H5Sget_simple_extent_type(space.id()) != H5S_NULL);
    std::vector<hsize_t> extent(static_cast<std::size_t>(axes));
    require(axes == 0 || H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr) == axes);
    entry.shape.assign(extent.begin(), extent.end());
    check_size(set, path, entry);
    entry.attributes = attributes(set);
    return entry;
  }

  void check_size(hid_t set, const std::string& path, const H5Entry& entry) const {
    const H5Handle list(H5Dget_create_plist(set), H5Pclose);
    require(list.is_open());
    const H5D_layout_t layout = H5Pget_layout(list.id());
    const bool elsewhere = layout == H5D_CONTIGUOUS && H5Pget_external_count(list.id()) != 0;
    if (elsewhere || (layout != H5D_CHUNKED && layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)) {
      throw_damaged(name_, fmt::format("the data of {} lies outside the file", path));
    }
    const bool packed = H5Pget_nfilters(list.id()) > 1;  // h5repack may have compressed it
    const std::uint64_t most = packed ? file_bytes_ * kMostDeflated : file_bytes_;
    std::uint64_t bytes = element_bytes(*entry.type);
    if (std::ranges::find(entry.shape, 0) != entry.shape.end()) return;
    for (const std::uint64_t extent : entry.shape) {
      if (extent > most / bytes) throw_damaged(name_, fmt::format("{} is larger than the file", path));
      bytes *= extent;
    }
  }

  std::map<std::string, H5Value> attributes(hid_t object) const {
    std::vector<std::string> names;
    require(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_attribute, &names) >= 0);
    std::map<std::string, H5Value> values;
    for (const std::string& name : names) {
      const H5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
      require(attribute.is_open());
      values[name] = value_of(attribute.id(), name);
    }
    return values;
  }

  H5Value value_of(hid_t attribute, const std::string& name) const {
    const H5Handle type(H5Aget_type(attribute), H5Tclose);
    const H5Handle space(H5Aget_space(attribute), H5Sclose);
    require(type.is_open() && space.is_open());
    const std::size_t bytes = H5Tget_size(type.id());
    const H5T_class_t kind = H5Tget_class(type.id());
    if (H5Sget_simple_extent_npoints(space.id()) == 1 && bytes <= kMostAttributeBytes) {
      if (kind == H5T_STRING && H5Tis_variable_str(type.id()) == 0) {
        std::string text(bytes, '\0');
        require(H5Aread(attribute, type.id(), text.data()) >= 0);
        text.erase(text.find_last_not_of('\0') + 1);
        return text;
      }
      if (H5Tequal(type.id(), H5T_STD_I64LE) > 0) return number<std::int64_t>(attribute, type.id());
      if (H5Tequal(type.id(), H5T_STD_U64LE) > 0) return number<std::uint64_t>(attribute, type.id());
      if (H5Tequal(type.id(), H5T_IEEE_F64LE) > 0) return number<double>(attribute, type.id());
    }
    throw_damaged(name_, fmt::format("the attribute {} has a type that quipu does not write", name));
  }

  template <typename T>
  T number(hid_t attribute, hid_t type) const {
    T value = 0;
    require(H5Aread(attribute, type, &value) >= 0);
    return value;
  }

  hid_t file_;
  const std::string& name_;
  std::uint64_t file_bytes_;
  H5Catalogue catalogue_;
};

/// How large the chunks of a data set must be in the file, and their shape; 0 bytes: they may be of any size.
struct ChunkForm {
  std::vector<hsize_t> extent;
  hsize_t stored_bytes = 0;
};

/// Steps `at` to the next chunk within the rows; false after the last.
bool next_chunk(std::vector<hsize_t>& at, const std::vector<hsize_t>& chunk, const H5Shape& shape, std::uint64_t end) {
  for (std::size_t i = at.size(); i-- > 0;) {
    at[i] += chunk[i];
    if (at[i] < (i == 0 ? end : shape[i])) return true;
    if (i > 0) at[i] = 0;
  }
  return false;
}

}  // namespace

void throw_damaged(const std::string& name, const std::string& reason) {
  throw InputError("{}: damaged, or changed since it was written ({}); restore it from a copy, or make it again", name,
                   reason);
}

H5Catalogue walk_file(hid_t file, const std::string& name, std::uint64_t file_bytes) {
  return Walk(file, name, file_bytes).list();
}

void check_chunks(hid_t data_set, const std::string& name, const H5Entry& entry, std::uint64_t first,
                  std::uint64_t rows) {
  constexpr hsize_t kMostChunkBytes = hsize_t{1} << 30;
  const H5Handle list(H5Dget_create_plist(data_set), H5Pclose);
  if (H5Pget_layout(list.id()) != H5D_CHUNKED || entry.elements() == 0 || rows == 0) return;
  ChunkForm form;
  form.extent.resize(entry.shape.size());
  if (H5Pget_chunk(list.id(), static_cast<int>(form.extent.size()), form.extent.data()) < 0) {
    throw_damaged(name, hdf5_reason());
  }
  hsize_t chunk_bytes = element_bytes(*entry.type);
  for (const hsize_t extent : form.extent) {
    if (extent == 0 || extent > kMostChunkBytes / chunk_bytes) throw_damaged(name, "a chunk is too large");
    chunk_bytes *= extent;
  }
  const int filters = H5Pget_nfilters(list.id());
  constexpr hsize_t kChecksumBytes = 4;
  if (filters <= 1) form.stored_bytes = chunk_bytes + (filters == 1 ? kChecksumBytes : 0);
  std::vector<hsize_t> at(form.extent.size(), 0);
  at[0] = first / form.extent[0] * form.extent[0];
  do {
    hsize_t bytes = 0;
    const bool found = H5Dget_chunk_storage_size(data_set, at.data(), &bytes) >= 0;
    if (!found || bytes < kChecksumBytes || (form.stored_bytes > 0 && bytes != form.stored_bytes)) {
      throw_damaged(name, "a chunk of data is missing or cut");
    }
  } while (next_chunk(at, form.extent, entry.shape, first + rows));
}

}  // namespace quipu
