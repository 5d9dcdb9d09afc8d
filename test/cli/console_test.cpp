#include "cli/console.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>

#include <cstdlib>

#include "cli/dummy_tool.h"
#include "cli/progress.h"

using namespace quipu;

namespace {

/// Runs `body` in a child whose standard input and error are a terminal of 100 columns; returns what it shows.
std::string on_terminal(const std::function<int()>& body, int& status) {
  int terminal = -1;
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 100;
  std::fflush(nullptr);
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    _exit(body());
  }
  std::string shown;
  std::array<char, 256> buffer{};
  for (ssize_t got = 0; (got = read(terminal, buffer.data(), buffer.size())) > 0;) {
    shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(terminal);
  status = dummy::wait_for(child);
  return shown;
}

}  // namespace

TEST_CASE("console: lines stand above the bar, and the bar goes in the end") {
  int status = -1;
  const std::string shown = on_terminal(
      [] {
        open_console("tool");
        if (!console_is_terminal() || console_width() != 100) return 1;
        {
          ProgressView view = console_progress();
          view.bar_every_s = 0;
          Progress progress("work", "steps", 4, 0, std::move(view));
          progress.update(1);
          log_note("a note");
        }
        console_error("broken\x1b[2J");
        close_console();
        return 0;
      },
      status);
  CHECK(status == 0);
  const std::size_t bar = shown.find("work  [=====>              ]  25 %  1/4 steps");
  const std::size_t note = shown.find("\r\033[Ka note\r\nwork  [=====>");
  REQUIRE(bar != std::string::npos);
  REQUIRE(note != std::string::npos);
  CHECK(bar < note);
  CHECK(shown.ends_with("\r\033[Ktool: broken [2J\r\n"));
}

TEST_CASE("console: waiting for somebody to type is refused") {
  int status = -1;
  on_terminal(
      [] {
        try {
          require_not_terminal("text");
        } catch (const UsageError& error) {
          const std::string text = error.what();
          return text == "standard input: is a terminal, and text would be read from it; name a file, or pipe it in"
                     ? 7
                     : 8;
        }
        return 9;
      },
      status);
  CHECK(status == 7);
}
