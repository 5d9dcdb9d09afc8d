#include "base/file_system.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace quipu {

int own_descriptor(const std::string& path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return -1;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a != "-" && b != "-" && std::filesystem::is_regular_file(a, ignored) &&
         std::filesystem::equivalent(a, b, ignored);
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel does
  std::string target = path;
  for (int i = 0; i < kMostLinks && own_descriptor(target) < 0; ++i) {
    std::array<char, 4096> text;
    const ssize_t n = ::readlink(target.c_str(), text.data(), text.size());
    if (n < 0) return target;
    const std::string next(text.data(), static_cast<std::size_t>(n));
    target = next.starts_with('/') ? next : split_path(target).first + "/" + next;
  }
  return target;
}

std::string host_name() {
  std::array<char, 256> text{};
  if (::gethostname(text.data(), text.size() - 1) != 0 || text[0] == '\0') return "localhost";
  return text.data();
}

bool is_process_alive(long process) { return ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH; }

int flush_folder(const std::string& folder) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open() || ::fsync(descriptor.get()) == 0) return 0;
  return errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

}  // namespace quipu
