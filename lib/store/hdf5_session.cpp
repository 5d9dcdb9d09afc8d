#include "store/hdf5_session.h"

#include <cstdlib>
#include <ctime>
#include <stdexcept>

#include "base/error.h"
#include "store/hdf5.h"

namespace quipu {

namespace {

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  std::string text() const { return fmt::format("{}.{}.{}", major, minor, release); }
};

constexpr Version kCompiled{H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE};

Version loaded_version() {
  Version version;
  H5get_libversion(&version.major, &version.minor, &version.release);
  return version;
}

/// HDF5 aborts the process where headers and library differ in anything: ask first, and forbid it to.
void start_library() {
  const Version loaded = loaded_version();
  if (loaded.major != kCompiled.major || loaded.minor != kCompiled.minor || loaded.release < kCompiled.release) {
    throw InputError("hdf5: the loaded library is version {}, this program needs {}; put that one first on the path",
                     loaded.text(), kCompiled.text());
  }
  ::setenv("HDF5_DISABLE_VERSION_CHECK", "2", 0);
  H5dont_atexit();
  if (H5open() < 0) throw InputError("hdf5: the library does not start");
}

/// Remembers the innermost cause.
herr_t keep_cause(unsigned n, const H5E_error2_t* error, void* text) {
  if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

std::string hdf5_versions() {
  const std::string loaded = loaded_version().text();
  return loaded == kCompiled.text() ? loaded : fmt::format("{} (compiled with {})", loaded, kCompiled.text());
}

std::string creation_time(std::optional<std::int64_t> seconds) {
  std::time_t now = seconds ? static_cast<std::time_t>(*seconds) : std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0') {
    char* end = nullptr;
    now = static_cast<std::time_t>(std::strtoll(epoch, &end, 10));
    if (*end != '\0') throw UsageError("SOURCE_DATE_EPOCH: '{}' is not a number of seconds", epoch);
  }
  std::tm parts = {};
  if (::gmtime_r(&now, &parts) == nullptr) throw UsageError("SOURCE_DATE_EPOCH: {} is out of range", now);
  char text[64];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, n};
}

std::unique_lock<std::recursive_mutex> hdf5_session() {
  static std::recursive_mutex mutex;
  static bool started = false;
  std::unique_lock lock(mutex);
  if (!started) start_library();
  started = true;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Eclear2(H5E_DEFAULT);
  return lock;
}

std::string hdf5_reason() {
  constexpr std::size_t kLongest = 100;
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_cause, &text);
  if (text.empty()) return "its structure is broken";
  if (text.starts_with("truncated file")) return "it is cut off";
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text.size() > kLongest ? text.substr(0, kLongest) : text;
}

hid_t stored_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return H5T_IEEE_F32LE;
    case ElementType::kFloat64:
      return H5T_IEEE_F64LE;
    case ElementType::kUInt8:
      return H5T_STD_U8LE;
    case ElementType::kUInt16:
      return H5T_STD_U16LE;
    case ElementType::kUInt32:
      return H5T_STD_U32LE;
    case ElementType::kInt32:
      return H5T_STD_I32LE;
    case ElementType::kInt64:
      return H5T_STD_I64LE;
    case ElementType::kUInt64:
      return H5T_STD_U64LE;
  }
  throw InternalError("hdf5: unknown element type {}", static_cast<int>(type));
}

std::pair<H5Handle, H5Handle> row_spaces(hid_t data_set, const H5Shape& shape, std::uint64_t first,
                                         std::uint64_t rows) {
  H5Handle file(H5Dget_space(data_set), H5Sclose);
  if (shape.empty()) return {std::move(file), H5Handle(H5Screate(H5S_SCALAR), H5Sclose)};
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> count(shape.begin(), shape.end());
  start[0] = first;
  count[0] = rows;
  if (H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0) file.close();
  H5Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose);
  return {std::move(file), std::move(memory)};
}

}  // namespace quipu
