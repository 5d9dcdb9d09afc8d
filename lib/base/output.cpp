#include "base/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace quipu {
namespace {

int first_error = 0;

[[noreturn]] void throw_write_error(int code) {
  if (first_error == 0) first_error = code;
  if (code == EPIPE) throw ClosedPipe("standard output: closed by its reader");
  throw InputError("standard output: {}; what was written there is not complete", std::strerror(code));
}

}  // namespace

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_write_error(errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw_write_error(errno);
}

void close_output() {
  if (first_error == 0 && std::ferror(stdout) != 0) first_error = EIO;  // somebody wrote and did not look
  if (std::fflush(stdout) != 0) throw_write_error(errno);
  if (std::fclose(stdout) != 0) throw_write_error(errno);
  if (first_error != 0) throw_write_error(first_error);
}

bool output_failed() { return first_error != 0; }

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is taken, which is this one. Opened the wrong way round, so that its use still fails.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace quipu
