#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace quipu {

/// Standard error as the tools use it: lines of the log, errors, and below them at most one progress bar. One process,
/// one console; safe from several threads.

/// Takes the log's lines from now on; `tool` opens warnings and errors.
void open_console(const std::string& tool);
/// Takes the bar away and lets go of the log.
void close_console();

void set_console_level(bool quiet, bool verbose);
bool console_is_quiet();

/// Whether standard error is a terminal that can redraw a line, and how many columns it has (80 where unknown).
bool console_is_terminal();
std::size_t console_width();

/// A line above the bar, whatever the level.
void console_line(const std::string& line);
/// `tool: message` on one line: control characters in it become blanks.
void console_error(const std::string& message);
/// Shows `bar` as the last line, in place of the one before; "" takes it away.
void set_console_bar(const std::string& bar);

/// Refuses to wait for somebody to type where standard input is a terminal. Throws UsageError.
/// `what` is what would be read, such as "text".
void require_not_terminal(const std::string& what);
/// Throws UsageError where a file would be written to a terminal.
void refuse_terminal_output(const std::string& output);
/// Throws InputError where a file that is read would be replaced by the output.
void refuse_input_as_output(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace quipu
