#include "base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace quipu {

MappedFile::MappedFile(const std::string& path) : MappedFile(InputFile(path)) {}

MappedFile::MappedFile(InputFile input) : name_(input.name()) {
  input.make_seekable();
  if (input.size() == 0) return;
  const std::uint64_t length = input.base() + input.size();
  void* mapping = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, input.descriptor(), 0);
  if (mapping == MAP_FAILED) {
    throw InputError("{}: cannot map its {} bytes: {}", name_, input.size(), std::strerror(errno));
  }
  mapping_ = mapping;
  mapped_ = length;
  bytes_ = std::span(static_cast<const std::byte*>(mapping), length).subspan(input.base());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(std::exchange(other.bytes_, {})),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

void MappedFile::let_go(std::span<const std::byte> part) const {
  if (mapping_ == nullptr || part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // a wish: the mapping is read-only
}

MappedFile MappedFile::borrow(std::string name, std::span<const std::byte> bytes) {
  MappedFile file;
  file.name_ = std::move(name);
  file.bytes_ = bytes;
  return file;
}

}  // namespace quipu
