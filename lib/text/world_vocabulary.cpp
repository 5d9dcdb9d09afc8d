#include <charconv>

#include "base/error.h"
#include "text/escape.h"
#include "text/utf8.h"
#include "text/world_tokenizer.h"

namespace quipu {

namespace {

/// One line of the file.
class Line {
 public:
  Line(std::string_view text, std::size_t number) : text_(text), number_(number) {}

  struct Entry {
    std::size_t id;
    std::string piece;
  };

  Entry read() {
    const std::size_t id = take_number("an id");
    take(' ');
    std::string piece = take_literal();
    take(' ');
    const std::size_t size = take_number("a size");
    if (at_ < text_.size()) wrong("has more behind its size");
    if (size != piece.size()) {
      throw InputError("line {}: its piece has {} bytes, and the line says {}; repair the file", number_, piece.size(),
                       size);
    }
    if (piece.empty()) wrong("has an empty piece");
    return {id, std::move(piece)};
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    throw InputError("line {}: {} ('{}'); repair the file", number_, what, escape_text(text_.substr(0, 80)));
  }

  char peek() const {
    if (at_ >= text_.size()) wrong("is cut short");
    return text_[at_];
  }
  void take(char c) {
    if (peek() != c) wrong("is no id, literal and size with blanks between them");
    ++at_;
  }
  std::size_t take_number(const char* what) {
    std::size_t number = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (parsed.ec != std::errc()) wrong(fmt::format("has no whole number where it needs {}", what));
    at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
    return number;
  }

  std::string take_literal() {
    const bool is_bytes = peek() == 'b';
    if (is_bytes) ++at_;
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong("has no quoted piece");
    ++at_;
    std::string piece;
    while (peek() != quote) {
      const char c = text_[at_++];
      if (c == '\\') {
        take_escape(is_bytes, piece);
      } else {
        piece += c;
      }
    }
    ++at_;
    return piece;
  }

  void take_escape(bool is_bytes, std::string& piece) {
    const char kind = peek();
    ++at_;
    constexpr std::string_view kNames = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t found = kNames.find(kind); found != kNames.npos) {
      piece += kValues[found];
    } else if (kind == 'x' && is_bytes) {
      piece += static_cast<char>(take_hex(2));
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      const std::uint32_t code = take_hex(kind == 'x' ? 2 : kind == 'u' ? 4 : 8);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) wrong("has an escape that is no character");
      append_utf8(piece, code);
    } else {
      wrong("has an escape that is not known");
    }
  }

  std::uint32_t take_hex(std::size_t digits) {
    const std::string_view text = text_.substr(at_, digits);
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.size() != digits || parsed.ec != std::errc() || parsed.ptr != text.data() + digits) {
      wrong("has an escape without its hexadecimal digits");
    }
    at_ += digits;
    return value;
  }

  std::string_view text_;
  std::size_t number_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> read_world_vocabulary(std::string_view text) {
  constexpr std::size_t kLineBytes = 8;  // a line has at least so many
  const std::size_t most = text.size() / kLineBytes + 1000;
  std::vector<std::string> pieces(1);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    Line::Entry entry = Line(line, number).read();
    if (entry.id == 0 || entry.id > most) {
      throw InputError("line {}: id {} is outside 1 to {}; repair the file", number, entry.id, most);
    }
    if (entry.id >= pieces.size()) pieces.resize(entry.id + 1);
    if (!pieces[entry.id].empty()) throw InputError("line {}: id {} is there twice; repair the file", number, entry.id);
    pieces[entry.id] = std::move(entry.piece);
  }
  return pieces;
}

}  // namespace quipu
