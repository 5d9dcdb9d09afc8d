#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/real.h"

namespace quipu {

class TextReader;

/// What a line of a file of questions asks.
enum class LineKind {
  choices,    ///< {question, choices, label}: which choice goes on?
  answers,    ///< {context, question, answers}: complete it
  last_word,  ///< {text}: what is its last word?
};

/// A line of such a file.
struct RecallLine {
  Index line = 0;  ///< from 1
  std::string context, question, text;
  std::vector<std::string> choices;
  Index label = 0;  ///< from 0
  std::vector<std::string> answers;
};

struct RecallLines {
  std::string name;    ///< of the file
  std::string digest;  ///< of its text, 32 hexadecimal digits
  LineKind kind = LineKind::choices;
  std::vector<RecallLine> lines;
};

/// Reads one JSON object of the kind that its keys say (`answer` is as good as `answers`, and may be one text).
/// `where` opens messages, such as "arc.jsonl: line 3". Throws InputError for what is no such object.
RecallLine parse_recall_line(std::string_view json, const std::string& where, LineKind& kind);

/// Reads JSON lines, plain or gzip; empty lines are passed over, and all others are of one kind. Throws InputError
/// that names the file and the number of the line.

RecallLines read_recall_lines(TextReader& reader);

/// A prompt: `{context}` and `{question}` in a template replaced.
std::string fill_template(std::string_view text, const RecallLine& line);

/// Whether every question has one `_`, the place that its choices belong to (as in WinoGrande), and text behind it.
bool have_blanks(const RecallLines& lines);

}  // namespace quipu
