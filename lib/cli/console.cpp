#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "base/file_system.h"
#include "base/log.h"

namespace quipu {
namespace {

struct Console {
  std::mutex mutex;
  std::string tool;
  std::string bar;
  bool quiet = false;
  bool verbose = false;
};

Console& the_console() {
  static Console console;
  return console;
}

constexpr const char* kEraseLine = "\r\033[K";

/// One write a line, so that lines of several processes do not mix. A standard error that is gone is no error.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void on_log(LogKind kind, const std::string& line) {
  Console& console = the_console();
  if (kind == LogKind::kNote && console.quiet) return;
  if (kind == LogKind::kDetail && !console.verbose) return;
  console_line(kind == LogKind::kWarning ? console.tool + ": warning: " + line : line);
}

}  // namespace

void open_console(const std::string& tool) {
  Console& console = the_console();
  console.tool = tool;
  console.bar.clear();
  console.quiet = console.verbose = false;
  set_log_sink(on_log);
}

void close_console() {
  set_console_bar("");
  set_log_sink({});
}

void set_console_level(bool quiet, bool verbose) {
  the_console().quiet = quiet;
  the_console().verbose = verbose;
}

bool console_is_quiet() { return the_console().quiet; }

bool console_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string(term) != "dumb";
}

std::size_t console_width() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void console_line(const std::string& line) {
  Console& console = the_console();
  const std::lock_guard lock(console.mutex);
  put(console.bar.empty() ? line + "\n" : kEraseLine + line + "\n" + console.bar);
}

void console_error(const std::string& message) {
  std::string line = the_console().tool + ": " + message;
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  set_console_bar("");
  console_line(line);
}

void set_console_bar(const std::string& bar) {
  Console& console = the_console();
  const std::lock_guard lock(console.mutex);
  if (bar.empty() && console.bar.empty()) return;
  put(kEraseLine + bar);
  console.bar = bar;
}

void require_not_terminal(const std::string& what) {
  if (isatty(STDIN_FILENO) == 1) {
    throw UsageError("standard input: is a terminal, and {} would be read from it; name a file, or pipe it in", what);
  }
}

void refuse_terminal_output(const std::string& output) {
  if (output == "-" && isatty(STDOUT_FILENO) == 1)
    throw UsageError("--output -: is a terminal, and the result is no text; give a file, or pipe it on");
}

void refuse_input_as_output(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (is_same_file(input, output))
      throw InputError("{}: is read, and the output would take its place; choose another name for the output", input);
}

}  // namespace quipu
