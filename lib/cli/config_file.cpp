#include "cli/config_file.h"

#include <algorithm>

#include "base/error.h"

namespace quipu {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void append_utf8(std::string& out, unsigned long code) {
  const auto put = [&out](unsigned long byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::vector<ConfigEntry> read() {
    for (skip_space(true); at_ < text_.size(); skip_space(true)) {
      if (text_[at_] == '[') {
        read_section();
      } else {
        read_entry();
      }
      end_line();
    }
    return std::move(entries_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw UsageError("{}:{}: {}", file_, line_, fmt::format(text, std::forward<Args>(args)...));
  }

  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  /// Skips blanks and a comment; also ends of lines where `lines` is set.
  void skip_space(bool lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      } else if (c == '\n') {
        if (!lines) return;
        ++line_;
      } else if (!is_blank(c)) {
        return;
      }
    }
  }

  void end_line() {
    skip_space(false);
    if (at_ < text_.size() && text_[at_] != '\n') fail("\"{}\" follows the value; start a new line", rest_of_line());
  }

  std::string_view rest_of_line() const {
    return trimmed(text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_));
  }

  /// One or more names joined by dots, up to `end`.
  std::vector<std::string> read_names(char end) {
    std::vector<std::string> names;
    for (;;) {
      skip_space(false);
      if (at('"') || at('\'')) {
        names.push_back(read_string());
      } else {
        const std::size_t start = at_;
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || at('-') || at('_')))
          ++at_;
        if (at_ == start) fail("a name is missing before \"{}\"; write key = value", rest_of_line());
        names.emplace_back(text_.substr(start, at_ - start));
      }
      skip_space(false);
      if (at(end)) break;
      if (!at('.')) fail("\"{}\" is not followed by '{}'; write key = value or [section]", names.back(), end);
      ++at_;
    }
    ++at_;
    return names;
  }

  void read_section() {
    ++at_;
    if (at('[')) fail("[[arrays of tables]] are not read; write [section]");
    section_ = read_names(']');
  }

  void read_entry() {
    ConfigEntry entry;
    entry.line = line_;
    std::vector<std::string> names = read_names('=');
    entry.key = names.back();
    names.pop_back();
    entry.section = section_;
    entry.section.insert(entry.section.end(), names.begin(), names.end());
    skip_space(false);
    if (at('[')) {
      entry.is_array = true;
      read_array(entry);
    } else {
      entry.values = {read_value("")};
    }
    for (const ConfigEntry& other : entries_) {
      if (other.key == entry.key && other.section == entry.section) {
        fail("{} stands here and in line {}; keep one (several values go into an array)", entry.key, other.line);
      }
    }
    entries_.push_back(std::move(entry));
  }

  void read_array(ConfigEntry& entry) {
    const int first_line = line_;
    ++at_;
    for (skip_space(true); !at(']'); skip_space(true)) {
      if (at_ >= text_.size()) fail("the array of line {} has no end; close it with ]", first_line);
      entry.values.push_back(read_value(",]"));
      skip_space(true);
      if (at(',')) {
        ++at_;
      } else if (!at(']')) {
        fail("the array of line {} goes on without a comma; write [a, b]", first_line);
      }
    }
    ++at_;
  }

  /// A string, or a bare word up to the end of the line, a comment, or one of `stops`.
  std::string read_value(std::string_view stops) {
    if (at('"') || at('\'')) return read_string();
    if (at('{')) fail("inline tables are not read; write section.key = value");
    const std::size_t start = at_;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (stops.find(text_[at_]) != std::string_view::npos) break;
      if (text_[at_] == '#' && (at_ == start || is_blank(text_[at_ - 1]))) break;
    }
    const std::string_view value = trimmed(text_.substr(start, at_ - start));
    if (value.empty()) fail("a value is missing; write key = value (\"\" is the empty text)");
    return std::string(value);
  }

  std::string read_string() {
    const char quote = text_[at_];
    if (text_.substr(at_, 3) == std::string(3, quote)) fail("multi-line strings are not read; write \\n in a string");
    std::string out;
    for (++at_; !at(quote); ++at_) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail("a string has no end; close it with {}", quote);
      if (quote == '"' && text_[at_] == '\\') {
        ++at_;
        read_escape(out);
      } else {
        out += text_[at_];
      }
    }
    ++at_;
    return out;
  }

  /// The letter after a backslash; `at_` stays on the last letter that was read.
  void read_escape(std::string& out) {
    constexpr std::string_view kLetters = "btnfr\"\\";
    constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
    const char letter = at_ < text_.size() ? text_[at_] : '\n';
    const std::size_t known = kLetters.find(letter);
    if (known != std::string_view::npos) {
      out += kMeanings[known];
      return;
    }
    const std::size_t count = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const std::string digits(text_.substr(std::min(at_ + 1, text_.size()), count));
    const bool hex = digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    const unsigned long code = count > 0 && hex && digits.size() == count ? std::stoul(digits, nullptr, 16) : ~0UL;
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail("\\{} is not an escape; use 'single quotes' for text with backslashes", letter == '\n' ? ' ' : letter);
    }
    append_utf8(out, code);
    at_ += count;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string> section_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace quipu
