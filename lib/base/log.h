#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace quipu {

/// What a line for the user is: a warning is always shown, a note unless --quiet, a detail only with --verbose.
enum class LogKind { kWarning, kNote, kDetail };

/// Takes one finished line, without its end of line.
using LogSink = std::function<void(LogKind, const std::string& line)>;

/// The library itself never prints: without a sink (the start) every line is dropped. `run_app` sets one that writes
/// to stderr. Returns the sink that was set before. To be called while no other thread logs.
LogSink set_log_sink(LogSink sink);

/// Hands a line to the sink; safe from several threads.
void log_line(LogKind kind, const std::string& line);

template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogKind::kWarning, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_note(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogKind::kNote, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_detail(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogKind::kDetail, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace quipu
