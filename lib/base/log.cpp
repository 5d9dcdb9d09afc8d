#include "base/log.h"

#include <mutex>

namespace quipu {
namespace {

struct Log {
  std::mutex mutex;
  LogSink sink;
};

Log& the_log() {
  static Log log;
  return log;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  return std::exchange(log.sink, std::move(sink));
}

void log_line(LogKind kind, const std::string& line) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  if (log.sink) log.sink(kind, line);
}

}  // namespace quipu
