#include "base/log.h"

#include <doctest/doctest.h>

#include <vector>

using namespace quipu;

TEST_CASE("log: lines reach the sink with their kind, and nobody without one") {
  std::vector<std::pair<LogKind, std::string>> lines;
  LogSink before = set_log_sink([&](LogKind kind, const std::string& line) { lines.emplace_back(kind, line); });
  log_warning("{} of {}", 1, 2);
  log_note("note");
  log_detail("detail");
  set_log_sink({});
  log_note("lost");
  set_log_sink(std::move(before));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == std::pair(LogKind::kWarning, std::string("1 of 2")));
  CHECK(lines[1] == std::pair(LogKind::kNote, std::string("note")));
  CHECK(lines[2] == std::pair(LogKind::kDetail, std::string("detail")));
}
