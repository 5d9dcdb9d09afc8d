#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/human.h"

namespace quipu {

/// Keys stay in the order in which they were set.
using Json = nlohmann::ordered_json;

/// Where a result goes: standard output, or standard error where standard output carries a file.
enum class Stream { kOutput, kError };

/// A table in plain text: columns two blanks apart; a column whose cells are all numbers stands to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  /// Throws InternalError where the number of cells is not that of the header.
  void row(std::vector<std::string> cells);
  /// All lines, each ended; no blanks at the ends of lines. A header of empty names only is left out.
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// An object that starts with "schema": "quipu-NAME-VERSION", such as json_report("eval-ppl", 1). Names of keys have
/// their unit: "wall_s", "nll_sum_nats".
Json json_report(std::string_view name, int version);

/// One line. Numbers that are not finite become null; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

/// Writes text, or a table, or a line of JSON. Throws ClosedPipe or InputError (standard output only).
void print_text(std::string_view text, Stream stream = Stream::kOutput);
void print_table(const Table& table, Stream stream = Stream::kOutput);
void print_json(const Json& value, Stream stream = Stream::kOutput);

}  // namespace quipu
