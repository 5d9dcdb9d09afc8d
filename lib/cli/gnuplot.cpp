#include "cli/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/child_process.h"
#include "base/file.h"

extern char** environ;

namespace quipu {
namespace {

[[noreturn]] void fail(const std::string& why) {
  throw InputError("gnuplot: {}; the package gnuplot-nox has one that draws svg and png", why);
}

void require(int error, const char* what) {
  if (error != 0) fail(fmt::format("cannot {}: {}", what, std::strerror(error)));
}

/// Starts a gnuplot that reads `input` and writes to `output` and `complaints`.
pid_t start_gnuplot(const std::string& program, int input, int output, int complaints) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t signals;
  require(::posix_spawn_file_actions_init(&actions), "start");
  require(::posix_spawnattr_init(&attributes), "start");
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string name = "gnuplot", no_settings = "-d";
  const std::array<char*, 3> arguments = {name.data(), no_settings.data(), nullptr};
  pid_t process = -1;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  require(error, "start");
  return process;
}

std::string read_to_end(int descriptor) {
  std::string text;
  std::array<char, 1 << 14> piece;
  for (;;) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) require(errno, "read from it");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

/// gnuplot repeats the line it stumbled over, points at the place, and then says what is wrong.
std::string complaint(int descriptor) {
  ::lseek(descriptor, 0, SEEK_SET);
  const std::string text = read_to_end(descriptor);
  std::string last;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t^") != std::string::npos) last = line;
    begin = end + 1;
  }
  const std::size_t begin = std::min(last.find_first_not_of(" \t"), last.size());
  return last.substr(begin, last.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

std::string find_gnuplot() {
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "";
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string program = path.substr(begin, end - begin) + "/gnuplot";
    struct stat info = {};
    // A folder that is not given in full depends on where one stands: such a program is not what is meant.
    if (program[0] == '/' && program.size() > 8 && ::access(program.c_str(), X_OK) == 0 &&
        ::stat(program.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      return program;
    begin = end + 1;
  }
  throw InputError("gnuplot: is not in PATH, and plots are drawn with it; install the package gnuplot-nox");
}

std::string run_gnuplot(const std::string& program, const std::string& script) {
  // Script and complaints are files without a name, so that one pipe alone has to be served.
  const Descriptor input = make_spool(), complaints = make_spool();
  require(write_at(input.get(), 0, std::as_bytes(std::span(script))), "write its script to $TMPDIR");
  ::lseek(input.get(), 0, SEEK_SET);
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, "make a pipe");
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  OwnedProcess child(start_gnuplot(program, input.get(), to.get(), complaints.get()));
  to.close();
  std::string drawn = read_to_end(from.get());
  const int status = child.wait();
  if (WIFSIGNALED(status)) fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) {
    const std::string why = complaint(complaints.get());
    fail(fmt::format("ended with status {}{}{}", WEXITSTATUS(status), why.empty() ? "" : ": ", why));
  }
  return drawn;
}

}  // namespace quipu
