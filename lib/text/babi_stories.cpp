#include "text/babi_stories.h"

#include "base/error.h"
#include "base/real.h"
#include "text/answer_match.h"

namespace quipu {

std::string BabiQuestion::key() const {
  std::string text;
  for (const std::string& fact : facts) text += fact + '\n';
  return text + question;
}

std::vector<BabiQuestion> parse_babi(std::string_view text, const std::string& name) {
  std::vector<BabiQuestion> questions;
  std::vector<std::string> facts;
  Index number = 0, last = 0;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (squeeze_blanks(line).empty()) continue;
    const std::size_t blank = line.find(' ');
    Index own = 0;
    for (const char c : line.substr(0, blank))
      own = c >= '0' && c <= '9' && own < 1000000 ? 10 * own + (c - '0') : -1000000;
    if (blank == line.npos || own < 1 || (own != 1 && own != last + 1))
      throw InputError("{}: line {}: does not begin with {}1 and a blank, as bAbI's lines do", name, number,
                       last > 0 ? fmt::format("{} or ", last + 1) : "");
    if (own == 1) facts.clear();
    last = own;
    const std::string_view rest = line.substr(blank + 1);
    const std::size_t tab = rest.find('\t');
    if (tab == rest.npos) {
      facts.push_back(squeeze_blanks(rest));
      continue;
    }
    const std::string_view answer = rest.substr(tab + 1, rest.find('\t', tab + 1) - tab - 1);
    questions.push_back({facts, squeeze_blanks(rest.substr(0, tab)), squeeze_blanks(answer)});
    if (questions.back().answer.empty() || facts.empty())
      throw InputError("{}: line {}: its question has no answer, or no fact before it", name, number);
  }
  if (questions.empty()) throw InputError("{}: has no question in bAbI's format", name);
  return questions;
}

}  // namespace quipu
