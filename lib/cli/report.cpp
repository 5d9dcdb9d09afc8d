#include "cli/report.h"

#include <algorithm>

#include "base/error.h"
#include "base/output.h"
#include "cli/console.h"

namespace quipu {
namespace {

/// Columns on a terminal: letters of UTF-8, not bytes.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool looks_numeric(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  const std::size_t first = cell[0] == '-' || cell[0] == '+' ? 1 : 0;
  return first < cell.size() && cell[first] >= '0' && cell[first] <= '9';
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  if (cells.size() != header_.size()) {
    throw InternalError("a row of {} cells in a table of {} columns", cells.size(), header_.size());
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  const std::size_t count = header_.size();
  std::vector<std::size_t> width(count);
  std::vector<bool> right(count, !rows_.empty());
  for (std::size_t c = 0; c < count; ++c) {
    width[c] = columns(header_[c]);
    for (const auto& cells : rows_) {
      width[c] = std::max(width[c], columns(cells[c]));
      if (!looks_numeric(cells[c])) right[c] = false;
    }
  }
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < count; ++c) {
      const std::string fill(width[c] - columns(cells[c]), ' ');
      line += (c == 0 ? "" : "  ") + (right[c] ? fill + cells[c] : cells[c] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  if (std::any_of(header_.begin(), header_.end(), [](const std::string& name) { return !name.empty(); })) add(header_);
  for (const auto& cells : rows_) add(cells);
  return out;
}

Json json_report(std::string_view name, int version) {
  Json report;
  report["schema"] = fmt::format("quipu-{}-{}", name, version);
  return report;
}

std::string json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

void print_text(std::string_view text, Stream stream) {
  if (stream == Stream::kOutput) {
    write_output(text);
    return;
  }
  if (text.ends_with('\n')) text.remove_suffix(1);
  console_line(std::string(text));
}

void print_table(const Table& table, Stream stream) { print_text(table.text(), stream); }

void print_json(const Json& value, Stream stream) { print_text(json_line(value), stream); }

}  // namespace quipu
