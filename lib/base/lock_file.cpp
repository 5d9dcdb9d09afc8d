#include "base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/file_system.h"

namespace quipu {

namespace {

/// Who holds a lock. `start` is the process's start in clock ticks since boot: it tells a process from a later one
/// with the same number (a requeued job in a fresh container is number 1 again).
struct Owner {
  std::string host;
  long process = 0;
  long long start = 0;
};

/// The 22nd field of /proc/N/stat, or -1. The second field is a name in brackets that may hold anything.
long long process_start(long process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return -1;
  std::istringstream fields(text.substr(bracket + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return fields ? std::strtoll(field.c_str(), nullptr, 10) : -1;
}

std::optional<Owner> read_owner(int descriptor) {
  std::array<std::byte, 512> bytes;
  const auto [error, n] = read_at(descriptor, 0, bytes);
  if (error != 0) return std::nullopt;
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), n));
  Owner owner;
  if (text >> owner.host >> owner.process >> owner.start) return owner;
  return std::nullopt;
}

/// The owner in a lock file; waits a moment for one that was only just made and is still empty.
std::optional<Owner> wait_for_owner(int descriptor) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (auto owner = read_owner(descriptor)) return owner;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return std::nullopt;
}

bool is_gone(const Owner& owner) {
  if (owner.host != host_name()) return false;
  if (!is_process_alive(owner.process)) return true;
  const long long start = process_start(owner.process);
  return start >= 0 && start != owner.start;
}

bool is_same_file(int descriptor, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

LockFile::LockFile(const std::string& output) : output_(output) {
  if (output == "-") return;
  const std::string target = follow_links(output);
  struct stat status = {};
  if (own_descriptor(target) >= 0 || (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))) return;
  path_ = target + ".lock";
  if (!create()) take_over();
  try {
    write_owner();
  } catch (...) {
    release();
    throw;
  }
}

LockFile::~LockFile() { release(); }

bool LockFile::create() {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file_.is_open()) return true;
  if (errno != EEXIST) throw InputError("{}: cannot make the lock file: {}", path_, std::strerror(errno));
  return false;
}

/// Takes the lock of a process that is gone. Who holds the file's flock and finds it still under its name may write
/// himself into it, so that of two that find it abandoned only one gets it.
void LockFile::take_over() {
  Descriptor held(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!held.is_open() && errno == ENOENT && create()) return;
  if (!held.is_open()) throw InputError("{}: cannot open the lock file: {}", path_, std::strerror(errno));
  const bool free = ::flock(held.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  const std::optional<Owner> owner = wait_for_owner(held.get());
  if (free && (!owner || is_gone(*owner)) && is_same_file(held.get(), path_)) {
    file_ = std::move(held);
    return;
  }
  throw InputError("{}: process {} on {} is writing it; wait for it, or remove {} if that process is gone", output_,
                   owner ? owner->process : 0, owner ? owner->host : "an unknown host", path_);
}

void LockFile::write_owner() {
  ::flock(file_.get(), LOCK_EX | LOCK_NB);
  const long process = ::getpid();
  const std::string text = fmt::format("{} {} {}\n", host_name(), process, process_start(process));
  const int error = ::ftruncate(file_.get(), 0) != 0 ? errno : write_at(file_.get(), 0, std::as_bytes(std::span(text)));
  if (error != 0) throw InputError("{}: cannot write the lock file: {}", path_, std::strerror(error));
}

void LockFile::release() noexcept {
  if (file_.is_open() && is_same_file(file_.get(), path_)) ::unlink(path_.c_str());
  file_.close();
}

}  // namespace quipu
