#include "store/hdf5_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include "base/file.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace quipu {

namespace {

struct DriverFile {
  H5FD_t base;  // first: HDF5 sees only this
  FileAccess* access;
  haddr_t allocated;
  haddr_t end;
};

DriverFile* ours(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* ours(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

H5FD_t* driver_open(const char*, unsigned flags, hid_t access_list, haddr_t) {
  const auto* info = static_cast<FileAccess* const*>(H5Pget_driver_info(access_list));
  if (info == nullptr) return nullptr;
  FileAccess* access = *info;
  if ((flags & 0x0002U) != 0 && ::ftruncate(access->descriptor, 0) != 0) {  // H5F_ACC_TRUNC
    access->error = errno;
    return nullptr;
  }
  const off_t end = ::lseek(access->descriptor, 0, SEEK_END);
  if (end < 0) {
    access->error = errno;
    return nullptr;
  }
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr) return nullptr;
  file->access = access;
  file->end = static_cast<haddr_t>(end) - access->base;
  return &file->base;
}

herr_t driver_close(H5FD_t* file) {
  delete ours(file);
  return 0;
}

herr_t driver_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
#ifdef H5FD_FEAT_DEFAULT_VFD_COMPATIBLE
  *flags |= H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
#endif
  return 0;
}

haddr_t driver_get_allocated(const H5FD_t* file, H5FD_mem_t) { return ours(file)->allocated; }

herr_t driver_set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  ours(file)->allocated = address;
  return 0;
}

haddr_t driver_get_end(const H5FD_t* file, H5FD_mem_t) { return ours(file)->end; }

herr_t driver_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* buffer) {
  FileAccess& access = *ours(file)->access;
  const auto bytes = std::span(static_cast<std::byte*>(buffer), size);
  const bool inside = address <= ours(file)->end && size <= ours(file)->end - address;
  if (!inside && !access.writable) {
    access.past_end = true;
    return -1;
  }
  const auto [error, n] = read_at(access.descriptor, access.base + address, bytes);
  if (error != 0) {
    if (access.error == 0) access.error = error;
    return -1;
  }
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(n), bytes.end(), std::byte{0});
  return 0;
}

herr_t driver_write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
  FileAccess& access = *ours(file)->access;
  if (!access.writable) return -1;
  if (access.error == 0) {
    access.error =
        write_at(access.descriptor, access.base + address, std::span(static_cast<const std::byte*>(buffer), size));
  }
  ours(file)->end = std::max<haddr_t>(ours(file)->end, address + size);
  return 0;
}

herr_t driver_truncate(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& state = *ours(file);
  if (!state.access->writable || state.end == state.allocated) return 0;
  if (state.access->error == 0 && ::ftruncate(state.access->descriptor, static_cast<off_t>(state.allocated)) != 0) {
    state.access->error = errno;
  }
  state.end = state.allocated;
  return 0;
}

H5FD_class_t make_driver() {
  H5FD_class_t driver = {};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(600);
#endif
  driver.name = "quipu";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(FileAccess*);
  driver.open = driver_open;
  driver.close = driver_close;
  driver.query = driver_query;
  driver.get_eoa = driver_get_allocated;
  driver.set_eoa = driver_set_allocated;
  driver.get_eof = driver_get_end;
  driver.read = driver_read;
  driver.write = driver_write;
  driver.truncate = driver_truncate;
  std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_SUPER);
  const H5FD_mem_t dichotomy[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(dichotomy), std::end(dichotomy), std::begin(driver.fl_map));
  return driver;
}

/// For a file that is read: what stands in memory beside the data that is asked for is small. Whole chunks are read
/// into place, so that a cache of chunks is of no use; the cache of structure may not grow with the file.
bool read_with_little_memory(hid_t list) {
  constexpr std::size_t kStructureBytes = std::size_t{1} << 17;  // eight times that in memory, where chunks are few
  H5AC_cache_config_t config{};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(list, &config) < 0) return false;
  config.set_initial_size = true;
  config.initial_size = config.min_size = kStructureBytes / 2;
  config.max_size = kStructureBytes;
  return H5Pset_mdc_config(list, &config) >= 0 && H5Pset_cache(list, 0, 1, 0, 1) >= 0;
}

}  // namespace

hid_t make_access_list(FileAccess& access) {
  static const H5FD_class_t driver = make_driver();
  static const hid_t driver_id = H5FDregister(&driver);
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  FileAccess* info = &access;
  if (list < 0 || driver_id < 0 || H5Pset_driver(list, driver_id, &info) < 0 ||
      H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
      (!access.writable && !read_with_little_memory(list))) {
    if (list >= 0) H5Pclose(list);
    return -1;
  }
  return list;
}

}  // namespace quipu
