#include "golden.h"

#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace quipu {
namespace {

/// An HDF5 identifier, closed at the end of its scope by the function that belongs to it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string path_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  return std::string(QUIPU_TEST_DATA) + "/golden/" + name + ".h5";
}

hid_t file_id(const std::shared_ptr<const void>& file) { return *static_cast<const hid_t*>(file.get()); }

/// Whether `path` leads somewhere from `root`, tested folder by folder as H5Lexists demands.
bool link_exists(hid_t root, const std::string& path) {
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (H5Lexists(root, prefix.c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::vector<hsize_t> extents(const Handle& space) {
  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::vector<hsize_t> out(static_cast<std::size_t>(std::max(rank, 0)));
  H5Sget_simple_extent_dims(space.get(), out.data(), nullptr);
  return out;
}

std::size_t count(const std::vector<hsize_t>& extent) {
  return static_cast<std::size_t>(
      std::accumulate(extent.begin(), extent.end(), hsize_t{1}, std::multiplies<hsize_t>()));
}

/// Collects the paths of data sets for H5Ovisit.
herr_t collect_dataset(hid_t, const char* name, const H5O_info_t* info, void* out) {
  if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

}  // namespace

GoldenCase::GoldenCase(std::shared_ptr<const void> file, std::string file_name, std::string name)
    : file_(std::move(file)), file_name_(std::move(file_name)), name_(std::move(name)) {}

bool GoldenCase::has(const std::string& path) const { return link_exists(file_id(file_), name_ + "/" + path); }

GoldenTensor GoldenCase::tensor(const std::string& path) const {
  if (!has(path)) throw InputError("{}: no such data set", where(path));
  const Handle data(H5Dopen2(file_id(file_), (name_ + "/" + path).c_str(), H5P_DEFAULT), H5Dclose);
  if (!data) throw InputError("{}: not a data set", where(path));
  const Handle space(H5Dget_space(data.get()), H5Sclose);
  const std::vector<hsize_t> extent = extents(space);
  GoldenTensor out{{extent.begin(), extent.end()}, std::vector<double>(count(extent))};
  if (H5Dread(data.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()) < 0) {
    throw InputError("{}: cannot be read as numbers", where(path));
  }
  return out;
}

std::vector<std::string> GoldenCase::tensors(const std::string& group) const {
  std::vector<std::string> out;
  const std::string path = group.empty() ? name_ : name_ + "/" + group;
  if (!link_exists(file_id(file_), path)) return out;
  const Handle object(H5Oopen(file_id(file_), path.c_str(), H5P_DEFAULT), H5Oclose);
  if (H5Ovisit2(object.get(), H5_INDEX_NAME, H5_ITER_INC, collect_dataset, &out, H5O_INFO_BASIC) < 0) {
    throw InputError("{}: cannot be listed", where(group));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool GoldenCase::has_attribute(const std::string& attribute) const {
  return H5Aexists_by_name(file_id(file_), name_.c_str(), attribute.c_str(), H5P_DEFAULT) > 0;
}

std::vector<double> GoldenCase::numbers(const std::string& attribute) const {
  if (!has_attribute(attribute)) throw InputError("{}: no such attribute", where(attribute));
  const Handle id(H5Aopen_by_name(file_id(file_), name_.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                  H5Aclose);
  const Handle space(H5Aget_space(id.get()), H5Sclose);
  std::vector<double> out(count(extents(space)));
  if (H5Aread(id.get(), H5T_NATIVE_DOUBLE, out.data()) < 0) {
    throw InputError("{}: the attribute cannot be read as numbers", where(attribute));
  }
  return out;
}

double GoldenCase::number(const std::string& attribute) const {
  const std::vector<double> all = numbers(attribute);
  if (all.size() != 1) throw InputError("{}: the attribute has {} elements, 1 wanted", where(attribute), all.size());
  return all[0];
}

double GoldenCase::number_or(const std::string& attribute, double otherwise) const {
  return has_attribute(attribute) ? number(attribute) : otherwise;
}

std::string GoldenCase::text(const std::string& attribute) const {
  if (!has_attribute(attribute)) throw InputError("{}: no such attribute", where(attribute));
  const Handle id(H5Aopen_by_name(file_id(file_), name_.c_str(), attribute.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                  H5Aclose);
  const Handle type(H5Aget_type(id.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING) throw InputError("{}: the attribute is no text", where(attribute));
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Aread(id.get(), type.get(), &text) < 0 || text == nullptr) {
      throw InputError("{}: the attribute cannot be read", where(attribute));
    }
    std::string out = text;
    H5free_memory(text);
    return out;
  }
  std::string out(H5Tget_size(type.get()), '\0');
  if (H5Aread(id.get(), type.get(), out.data()) < 0) {
    throw InputError("{}: the attribute cannot be read", where(attribute));
  }
  out.resize(std::min(out.size(), out.find('\0')));
  return out;
}

GoldenFile::GoldenFile(const std::string& name) : path_(path_of(name)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t id = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id < 0) throw InputError("{}: cannot be opened as HDF5", path_);
  file_ = std::shared_ptr<const void>(new hid_t(id), [](const void* pointer) {
    const auto* file = static_cast<const hid_t*>(pointer);
    H5Fclose(*file);
    delete file;
  });
}

bool GoldenFile::exists(const std::string& name) { return std::filesystem::exists(path_of(name)); }

std::vector<std::string> GoldenFile::cases() const {
  std::vector<std::string> out;
  if (H5Literate(file_id(file_), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &out) < 0) {
    throw InputError("{}: cannot be listed", path_);
  }
  return out;
}

GoldenCase GoldenFile::at(const std::string& name) const {
  if (!link_exists(file_id(file_), name)) throw InputError("{}: no case '{}'", path_, name);
  return GoldenCase(file_, path_, name);
}

}  // namespace quipu
