#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/real.h"
#include "base/stopwatch.h"

namespace quipu {

/// A process that this one has started, killed where it has not been waited for: it does not outlive this.
class OwnedProcess {
 public:
  explicit OwnedProcess(pid_t process) : process_(process) {}
  OwnedProcess(const OwnedProcess&) = delete;
  OwnedProcess& operator=(const OwnedProcess&) = delete;
  ~OwnedProcess();

  /// Its wait status. Call once.
  int wait();

 private:
  pid_t process_;
};

/// How a process ended.
struct ChildEnd {
  int status = 0;  ///< its exit status, or 128 + the signal that ended it, as a shell says it
  double wall_s = 0;
  Index peak_bytes = 0;  ///< the most memory that it had at once
};

/// Another program, run with nothing on its standard input. It stands in a process group of its own, so that a
/// terminal's Ctrl-C does not reach it; when this process dies, however it does, it gets SIGTERM. What it catches is
/// unaffected by the signals that this process ignores.
class ChildProcess {
 public:
  /// words: its arguments. output: a file that is written anew; errors: a file that is written on at its end.
  /// Throws InputError where it cannot be started or one of the files not be opened.
  ChildProcess(const std::string& program, const std::vector<std::string>& words, const std::string& output,
               const std::string& errors);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Asks it to end, where it has not, waits ten seconds for it, and then kills it.
  ~ChildProcess();

  /// How it ended; nothing while it runs. Does not wait.
  std::optional<ChildEnd> poll();
  void signal(int number) const;

 private:
  pid_t process_ = -1;
  Stopwatch watch_;
  std::optional<ChildEnd> end_;
};

/// The folder of the running program, links followed, and its own name. Throws InputError where the system hides it.
std::pair<std::string, std::string> own_program();

}  // namespace quipu
