#include "cli/cell_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/child_process.h"
#include "base/output.h"
#include "base/stop.h"
#include "profile/process_memory.h"

extern char** environ;

namespace quipu {
namespace {

/// Of the memory that is free: the rest is for the programs beside this one.
constexpr double kShareOfMemory = 0.9;

void require(int error, const char* what) {
  if (error != 0) throw InputError("a process to measure in: cannot {}: {}", what, std::strerror(error));
}

/// This program again, writing to `output`.
pid_t start_cell(const CellRequest& cell, int threads, const std::string& blas, int output) {
  posix_spawn_file_actions_t actions;
  require(::posix_spawn_file_actions_init(&actions), "start it");
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  std::array<std::string, 8> words = {"profile", "--quiet",    "--blas", blas, "--threads", fmt::to_string(threads),
                                      "--cell",  to_json(cell)};
  std::array<char*, 9> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t process = -1;
  const int error = ::posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  require(error, "start it");
  return process;
}

/// Everything up to the end, or nothing where a stop was asked for.
std::optional<std::string> read_until_stop(int descriptor) {
  constexpr int kLook_ms = 100;
  std::string text;
  std::array<char, 1 << 14> piece;
  while (!stop_requested()) {
    pollfd ready{descriptor, POLLIN, 0};
    if (::poll(&ready, 1, kLook_ms) <= 0) continue;
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) require(errno, "read from it");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

std::string ending(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("its process was ended by signal {}{}", WTERMSIG(status),
                       WTERMSIG(status) == SIGKILL ? ", as the system does where memory runs out" : "");
  return fmt::format("its process ended with status {}", WEXITSTATUS(status));
}

}  // namespace

std::optional<ProfileRow> measure_apart(const CellRequest& cell, int threads, const std::string& blas) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, "make a pipe");
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  OwnedProcess process(start_cell(cell, threads, blas, to.get()));
  to.close();
  const std::optional<std::string> answer = read_until_stop(from.get());
  if (!answer) return std::nullopt;
  const int status = process.wait();
  if (stop_requested()) return std::nullopt;
  ProfileRow row;
  if (answer->empty()) {
    row.mixer = cell.mixer, row.mode = mode_name(cell.mode), row.length = cell.length, row.batch = cell.batch;
    row.note = ending(status);
  } else {
    row = row_from_json(*answer);
  }
  row.threads = threads;
  return row;
}

void answer_cell(const std::string& json) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const CellRequest cell = request_from_json(json);
  limit_memory(static_cast<std::size_t>(static_cast<double>(memory_left()) * kShareOfMemory));
  try {
    if (const auto row = measure_cell(cell)) write_output(to_json(*row));
  } catch (const InternalError& error) {
    write_output(to_json(ProfileRow{}, error.what()));
  }
}

}  // namespace quipu
