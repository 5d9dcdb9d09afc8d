#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/file_system.h"

namespace quipu {

namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kLargestCall = std::size_t{1} << 30;  // Linux moves at most 2 GiB a call

}  // namespace

int Descriptor::close() noexcept {
  if (number_ < 0) return 0;
  return ::close(std::exchange(number_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

int write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(descriptor, bytes.data(), std::min(bytes.size(), kLargestCall), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

std::pair<int, std::size_t> read_at(int descriptor, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pread(descriptor, bytes.data() + done, std::min(bytes.size() - done, kLargestCall),
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {errno, done};
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return {0, done};
}

Descriptor make_spool() {
  const char* variable = std::getenv("TMPDIR");
  const std::string folder = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  Descriptor spool(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (spool.is_open()) return spool;
  std::string path = folder + "/quipu.XXXXXX";
  spool = Descriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (!spool.is_open()) {
    throw InputError("{}: cannot keep a temporary file there: {}; set TMPDIR to another folder", folder,
                     std::strerror(errno));
  }
  ::unlink(path.c_str());
  return spool;
}

std::string shown_path(const std::string& path, const char* stream_name) { return path == "-" ? stream_name : path; }

InputFile::InputFile(const std::string& path) : name_(shown_path(path, "stdin")) {
  const int own = path == "-" ? STDIN_FILENO : own_descriptor(path);
  descriptor_ = Descriptor(own >= 0 ? ::fcntl(own, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor_.is_open()) throw InputError("{}: cannot read: {}", name_, std::strerror(errno));
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) != 0) throw InputError("{}: cannot read: {}", name_, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw InputError("{}: is a folder; give a file", name_);
  if (own >= 0 && ::isatty(descriptor_.get()) == 1) {
    throw UsageError("{}: is a terminal; give a file, or pipe something in", name_);
  }
}

std::size_t InputFile::read_descriptor(std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(descriptor_.get(), bytes.data() + done, std::min(bytes.size() - done, kLargestCall));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw InputError("{}: cannot read: {}", name_, std::strerror(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::size_t InputFile::read(std::span<std::byte> bytes) {
  const std::size_t held = std::min(peeked_.size(), bytes.size());
  std::memcpy(bytes.data(), peeked_.data(), held);
  peeked_.erase(0, held);
  return held + read_descriptor(bytes.subspan(held));
}

std::size_t InputFile::read_some(std::span<std::byte> bytes) {
  if (!peeked_.empty()) return read(bytes.first(std::min(peeked_.size(), bytes.size())));
  for (;;) {
    const ssize_t n = ::read(descriptor_.get(), bytes.data(), std::min(bytes.size(), kLargestCall));
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) throw InputError("{}: cannot read: {}", name_, std::strerror(errno));
  }
}

std::string InputFile::read_all() {
  std::string text;
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  std::vector<std::byte> piece(kPiece);
  for (std::size_t n = read(piece); n > 0; n = read(piece)) {
    text.append(reinterpret_cast<const char*>(piece.data()), n);
  }
  return text;
}

bool InputFile::is_hdf5() {
  std::byte next{};
  while (peeked_.size() < kSignature.size() && kSignature.starts_with(peeked_) && read_descriptor({&next, 1}) == 1) {
    peeked_ += static_cast<char>(next);
  }
  return peeked_.starts_with(kSignature);
}

void InputFile::make_seekable() {
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t here = ::lseek(descriptor_.get(), 0, SEEK_CUR);
    base_ = static_cast<std::uint64_t>(here) - peeked_.size();
    size_ = static_cast<std::uint64_t>(std::max(status.st_size, here)) - base_;
    return;
  }
  Descriptor spool = make_spool();
  std::vector<std::byte> piece(kPiece);
  size_ = 0;
  for (std::size_t n = read(piece); n > 0; n = read(piece)) {
    if (const int error = write_at(spool.get(), size_, std::span(piece).first(n)); error != 0) {
      throw InputError("{}: cannot keep a copy in $TMPDIR: {}", name_, std::strerror(error));
    }
    size_ += n;
  }
  base_ = 0;
  descriptor_ = std::move(spool);
}

void InputFile::rewind() {
  peeked_.clear();
  if (::lseek(descriptor_.get(), static_cast<off_t>(base_), SEEK_SET) < 0) {
    throw InputError("{}: cannot read again from its beginning: {}", name_, std::strerror(errno));
  }
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  const auto [error, n] = quipu::read_at(descriptor_.get(), base_ + offset, bytes);
  if (error != 0) throw InputError("{}: cannot read: {}", name_, std::strerror(error));
  if (n < bytes.size()) {
    throw InputError("{}: ends at byte {}, {} bytes too early", name_, offset + n, bytes.size() - n);
  }
}

}  // namespace quipu
