#include "base/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "base/file_system.h"

namespace quipu {
namespace {

/// The wait status of a process, once it has ended.
int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

Descriptor open_file(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.is_open()) throw InputError("{}: cannot open: {}", path, std::strerror(errno));
  return file;
}

/// What the new process does before it becomes the program: only what is allowed between fork and exec.
[[noreturn]] void become(char* const* words, int input, int output, int errors, int trouble, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGUSR1}) ::signal(number, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv(words[0], words);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(trouble, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

OwnedProcess::~OwnedProcess() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  wait();
}

int OwnedProcess::wait() {
  const int status = wait_for(process_);
  process_ = -1;
  return status;
}

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& words, const std::string& output,
                           const std::string& errors) {
  const Descriptor in = open_file("/dev/null", O_RDONLY), out = open_file(output, O_WRONLY | O_CREAT | O_TRUNC),
                   err = open_file(errors, O_WRONLY | O_CREAT | O_APPEND);
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw InputError("{}: cannot be started: {}", program, std::strerror(errno));
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) become(arguments.data(), in.get(), out.get(), err.get(), to.get(), parent);
  if (process_ < 0) throw InputError("{}: cannot be started: {}", program, std::strerror(errno));
  to.close();
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(from.get(), &error, sizeof error)) < 0 && errno == EINTR) continue;
  if (got == 0) return;  // it runs: exec has closed the pipe
  wait_for(process_);
  process_ = -1;
  throw InputError("{}: cannot be started: {}", program, std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (process_ <= 0 || end_) return;
  constexpr int kPatience = 100;
  ::kill(process_, SIGTERM);
  for (int i = 0; i < kPatience; ++i) {
    if (poll()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::kill(process_, SIGKILL);
  wait_for(process_);
}

std::optional<ChildEnd> ChildProcess::poll() {
  if (end_) return end_;
  int status = 0;
  struct rusage usage = {};
  const pid_t got = ::wait4(process_, &status, WNOHANG, &usage);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  end_ = ChildEnd{.status = got < 0               ? 127
                            : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                  : WEXITSTATUS(status),
                  .wall_s = watch_.seconds(),
                  .peak_bytes = static_cast<Index>(usage.ru_maxrss) * 1024};
  return end_;
}

void ChildProcess::signal(int number) const {
  if (process_ > 0 && !end_) ::kill(process_, number);
}

std::pair<std::string, std::string> own_program() {
  std::array<char, 4096> path;
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) throw InputError("/proc/self/exe: cannot be read: {}; is /proc mounted?", std::strerror(errno));
  return split_path(std::string(path.data(), static_cast<std::size_t>(n)));
}

}  // namespace quipu
