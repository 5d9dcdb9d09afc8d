#include "text/recall_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/digest.h"
#include "base/error.h"
#include "text/text_reader.h"

namespace quipu {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end()) throw InputError("{}: has no '{}'; mend the line", where, key);
  if (!at->is_string()) throw InputError("{}: its '{}' is no text; mend the line", where, key);
  return at->get<std::string>();
}

std::vector<std::string> texts_of(const Json& object, const char* key, const std::string& where) {
  const Json& list = object.at(key);
  std::vector<std::string> texts;
  if (list.is_string()) return {list.get<std::string>()};
  if (!list.is_array()) throw InputError("{}: its '{}' is no list of texts; mend the line", where, key);
  for (const Json& text : list) {
    if (!text.is_string()) throw InputError("{}: its '{}' is no list of texts; mend the line", where, key);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void read_choices(const Json& object, const std::string& where, RecallLine& line) {
  line.question = text_of(object, "question", where);
  if (object.contains("context")) line.context = text_of(object, "context", where);
  line.choices = texts_of(object, "choices", where);
  if (line.choices.size() < 2)
    throw InputError("{}: has {} choices; there must be 2 or more", where, line.choices.size());
  for (const std::string& choice : line.choices)
    if (choice.empty()) throw InputError("{}: one of its choices is empty; mend the line", where);
  const auto label = object.find("label");
  if (label == object.end() || !label->is_number_integer())
    throw InputError("{}: has no whole number as its 'label'; mend the line", where);
  line.label = label->get<std::int64_t>();
  if (line.label < 0 || line.label >= static_cast<Index>(line.choices.size()))
    throw InputError("{}: its label is {}, and there are {} choices, counted from 0; mend the line", where, line.label,
                     line.choices.size());
}

void read_answers(const Json& object, const char* key, const std::string& where, RecallLine& line) {
  line.question = text_of(object, "question", where);
  if (object.contains("context")) line.context = text_of(object, "context", where);
  line.answers = texts_of(object, key, where);
  if (line.answers.empty()) throw InputError("{}: has no answer; mend the line", where);
  for (const std::string& answer : line.answers)
    if (std::ranges::all_of(answer, [](unsigned char c) { return c <= ' '; }))
      throw InputError("{}: one of its answers is empty; mend the line", where);
}

void read_text(const Json& object, const std::string& where, RecallLine& line) {
  line.text = text_of(object, "text", where);
  const std::size_t end = line.text.find_last_not_of(" \t\r\n");
  line.text.resize(end == line.text.npos ? 0 : end + 1);
  if (line.text.find_first_of(" \t\n") == line.text.npos)
    throw InputError("{}: its text has no word before the last one; mend the line", where);
}

const char* name_of(LineKind kind) {
  return kind == LineKind::choices ? "choices" : kind == LineKind::answers ? "answers" : "text";
}

}  // namespace

RecallLine parse_recall_line(std::string_view json, const std::string& where, LineKind& kind) {
  Json object;
  try {
    object = Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw InputError("{}: is no JSON at byte {} of it; mend the line", where, error.byte);
  }
  if (!object.is_object()) throw InputError("{}: is no object of JSON; mend the line", where);
  RecallLine line;
  const char* const answers = object.contains("answers") ? "answers" : "answer";
  if (object.contains("choices")) {
    kind = LineKind::choices;
    read_choices(object, where, line);
  } else if (object.contains(answers)) {
    kind = LineKind::answers;
    read_answers(object, answers, where, line);
  } else if (object.contains("text")) {
    kind = LineKind::last_word;
    read_text(object, where, line);
  } else {
    throw InputError("{}: has neither 'choices' nor 'answers' nor 'text'; it is no question", where);
  }
  return line;
}

RecallLines read_recall_lines(TextReader& reader) {
  RecallLines all;
  all.name = reader.name();
  Digester digester;
  std::string text;
  std::vector<char> block(1 << 16);
  while (const std::size_t got = reader.read(block)) text.append(block.data(), got);
  digester.update(text);
  all.digest = digester.finish().hex();
  std::optional<LineKind> kind;
  Index number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = fmt::format("{}: line {}", all.name, number + 1);
    LineKind own{};
    RecallLine parsed = parse_recall_line(line, where, own);
    if (kind && *kind != own)
      throw InputError("{}: has '{}', and the lines before have '{}'; give them as files of their own", where,
                       name_of(own), name_of(*kind));
    kind = own;
    parsed.line = number + 1;
    all.lines.push_back(std::move(parsed));
  }
  if (!kind) throw InputError("{}: holds no line with a question", all.name);
  all.kind = *kind;
  return all;
}

std::string fill_template(std::string_view text, const RecallLine& line) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    bool replaced = false;
    for (const auto& [name, value] :
         {std::pair<std::string_view, const std::string&>{"{context}", line.context}, {"{question}", line.question}})
      if (rest.starts_with(name)) {
        filled += value;
        at += name.size();
        replaced = true;
        break;
      }
    if (!replaced) filled += text[at++];
  }
  return filled;
}

bool have_blanks(const RecallLines& lines) {
  return std::ranges::all_of(lines.lines, [](const RecallLine& line) {
    if (line.question.empty()) return false;
    const std::size_t at = line.question.find('_');
    return at < line.question.size() - 1 && at == line.question.rfind('_');
  });
}

}  // namespace quipu
