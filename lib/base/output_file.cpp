#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/file_system.h"

namespace quipu {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Held while a temporary file is made and locked, so that no other thread takes it for an abandoned one.
std::mutex& temporaries_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// What the names of temporary files of a target begin with on this machine; the process and a number follow.
std::string temporary_prefix(const std::string& name) {
  constexpr std::size_t kLongest = 120;  // leaves room within the 255 bytes of a file name
  const auto shorten = [](const std::string& text, std::size_t longest) {
    if (text.size() <= longest) return text;
    return text.substr(0, longest - 32) + digest_of(std::as_bytes(std::span(text))).hex();
  };
  return fmt::format(".{}.tmp.{}.", shorten(name, kLongest), shorten(host_name(), 64));
}

/// Removes a temporary file whose process is gone. Live ones are locked, and stay, whatever their number says.
void remove_if_abandoned(const std::string& folder, const std::string& name, std::size_t prefix) {
  long process = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix, end, process);
  if (error != std::errc() || stop == end || *stop != '.') return;
  if (process != ::getpid() && is_process_alive(process)) return;
  const std::string path = folder + "/" + name;
  Descriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

void remove_abandoned(const std::string& folder, const std::string& prefix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) == 0) names.emplace_back(entry->d_name);
  }
  for (const std::string& name : names) remove_if_abandoned(folder, name, prefix.size());
}

/// Writes to a stream. Returns 0 or an error number.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), std::min(bytes.size(), kPiece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

/// Flushes to the disk. Returns 0 or an error number; what cannot be flushed (a pipe, a device) counts as done.
int flush_file(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
  }
  return 0;
}

/// The path of an open file in /proc.
std::string path_of(const Descriptor& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

}  // namespace

OutputFile::OutputFile(const std::string& path, Access access) : name_(shown_path(path, "stdout")) {
  if (path.empty()) throw UsageError("the name of the output file is empty; give a file name");
  const std::string target = path == "-" ? "/dev/stdout" : follow_links(path);
  if (const int own = own_descriptor(target); own >= 0) {
    open_direct(Descriptor(::fcntl(own, F_DUPFD_CLOEXEC, 0)), access);
    return;
  }
  struct stat status = {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(status.st_mode)) throw InputError("{}: is a folder; give a file name", name_);
  if (exists && !S_ISREG(status.st_mode)) {
    open_direct(Descriptor(::open(target.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)), access);
    return;
  }
  if (exists && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);
  target_ = target;
  open_temporary(exists, status.st_mode & 07777);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::fail(int error) const {
  if (error == EPIPE) throw ClosedPipe("{}: the reader has closed the pipe", name_);
  throw InputError("{}: cannot write: {}", name_, std::strerror(error));
}

bool OutputFile::is_terminal() const { return target_.empty() && ::isatty(file_.get()) == 1; }

void OutputFile::open_direct(Descriptor target, Access access) {
  if (!target.is_open()) fail(errno);
  file_ = std::move(target);
  if (access == Access::random) spool_ = make_spool();
}

template <typename F>
void OutputFile::make_temporary(F&& make) {
  static std::atomic<unsigned> counter{0};
  const auto [folder, name] = split_path(target_);
  const std::string prefix = temporary_prefix(name);
  do {
    temporary_ = fmt::format("{}/{}{}.{}", folder, prefix, ::getpid(), counter++);
    if (make(temporary_.c_str())) return;
  } while (errno == EEXIST);
  const int error = errno;
  temporary_.clear();
  fail(error);
}

void OutputFile::open_temporary(bool exists, unsigned mode) {
  const auto [folder, name] = split_path(target_);
  if (name.empty()) throw InputError("{}: names a folder; give a file name", name_);
  const std::lock_guard guard(temporaries_mutex());
  remove_abandoned(folder, temporary_prefix(name));
  file_ = Descriptor(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (!file_.is_open() || ::access(path_of(file_).c_str(), F_OK) != 0)
    make_temporary([this](const char* path) {
      file_ = Descriptor(::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      return file_.is_open();
    });
  ::flock(file_.get(), LOCK_EX | LOCK_NB);
  if (exists && ::fchmod(file_.get(), static_cast<mode_t>(mode)) != 0) {
    const int error = errno;
    discard();
    fail(error);
  }
}

int OutputFile::descriptor() const { return spool_.is_open() ? spool_.get() : file_.get(); }

void OutputFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(descriptor(), bytes); error != 0) fail(error);
}

void OutputFile::copy_spool() {
  std::vector<std::byte> piece(kPiece);
  for (std::uint64_t offset = 0;;) {
    const auto [read_error, n] = read_at(spool_.get(), offset, piece);
    if (read_error != 0) fail(read_error);
    if (n == 0) return;
    if (const int error = write_all(file_.get(), std::span(piece).first(n)); error != 0) fail(error);
    offset += n;
  }
}

void OutputFile::commit() {
  if (spool_.is_open()) copy_spool();
  if (const int error = flush_file(file_.get()); error != 0) fail(error);
  if (target_.empty()) {
    if (const int error = file_.close(); error != 0) fail(error);
    return;
  }
  if (temporary_.empty()) {
    const std::lock_guard guard(temporaries_mutex());
    make_temporary([this](const char* path) {
      return ::linkat(AT_FDCWD, path_of(file_).c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
    });
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  if (const int error = file_.close(); error != 0) fail(error);
  if (const int error = flush_folder(split_path(target_).first); error != 0) fail(error);
}

void OutputFile::discard() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace quipu
