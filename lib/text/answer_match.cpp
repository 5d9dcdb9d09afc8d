#include "text/answer_match.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "text/blank.h"
#include "text/tokenizer.h"

namespace quipu {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

double f1(const std::vector<std::string>& said, const std::vector<std::string>& wanted) {
  std::map<std::string, int> left;
  for (const std::string& word : wanted) ++left[word];
  int both = 0;
  for (const std::string& word : said)
    if (const auto at = left.find(word); at != left.end() && at->second-- > 0) ++both;
  if (said.empty() || wanted.empty()) return said.size() == wanted.size() ? 1 : 0;
  return 2.0 * both / static_cast<double>(said.size() + wanted.size());
}

}  // namespace

std::string squeeze_blanks(std::string_view text) {
  std::string out;
  for (const std::string& word : words_of(text)) out += (out.empty() ? "" : " ") + word;
  return out;
}

bool comes_back(const Tokenizer& tokenizer, const std::string& text) {
  return squeeze_blanks(tokenizer.decode(tokenizer.encode(text))) == squeeze_blanks(text);
}

bool contains_answer(std::string_view completion, const std::vector<std::string>& answers, bool squeeze) {
  const std::string said = lower(squeeze ? squeeze_blanks(completion) : std::string(completion));
  return std::ranges::any_of(answers, [&](const std::string& answer) {
    return said.find(lower(squeeze ? squeeze_blanks(answer) : answer)) != said.npos;
  });
}

std::string normalize_answer(std::string_view text) {
  std::string kept;
  for (const char c : lower(text))
    if (std::ispunct(static_cast<unsigned char>(c)) == 0 || static_cast<unsigned char>(c) >= 0x80) kept += c;
  std::string out;
  for (const std::string& word : words_of(kept))
    if (word != "a" && word != "an" && word != "the") out += (out.empty() ? "" : " ") + word;
  return out;
}

bool exact_match(std::string_view completion, const std::vector<std::string>& answers, bool normalize) {
  return std::ranges::any_of(answers, [&](const std::string& answer) {
    return normalize ? normalize_answer(completion) == normalize_answer(answer)
                     : trimmed(completion) == trimmed(answer);
  });
}

double answer_f1(std::string_view completion, const std::vector<std::string>& answers) {
  double best = 0;
  for (const std::string& answer : answers)
    best = std::max(best, f1(words_of(normalize_answer(completion)), words_of(normalize_answer(answer))));
  return best;
}

}  // namespace quipu
