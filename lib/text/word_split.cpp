#include "text/word_split.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/blank.h"

namespace quipu {

namespace {

enum class Class : std::uint8_t { kLetter, kDigit, kPunctuation, kBlank, kUnknown };

struct Character {
  Class kind;
  std::size_t bytes;
};

constexpr std::size_t kMaxDigits = 3;

constexpr std::array<Class, 256> kClasses = [] {
  std::array<Class, 256> classes{};
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool letter = i >= 128 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    classes[static_cast<std::size_t>(i)] = is_blank(c)              ? Class::kBlank
                                           : letter                 ? Class::kLetter
                                           : (c >= '0' && c <= '9') ? Class::kDigit
                                                                    : Class::kPunctuation;
  }
  return classes;
}();

/// The words of one text: knows where it ends and whether it may go on.
struct Scanner {
  std::string_view text;
  bool complete;

  unsigned char byte(std::size_t at) const { return static_cast<unsigned char>(text[at]); }
  bool continues(std::size_t at) const { return at < text.size() && (byte(at) & 0xc0) == 0x80; }
  /// Whether byte `at` is not there yet.
  bool missing(std::size_t at) const { return at >= text.size() && !complete; }

  /// The character at `at`; kUnknown where it needs bytes that are not there yet, or at the end.
  Character character(std::size_t at) const {
    if (at >= text.size()) return {Class::kUnknown, 0};
    const unsigned char lead = byte(at);
    if (lead < 0xc2 || lead > 0xe3) return {kClasses[lead], 1};
    if (lead != 0xc2 && lead != 0xe2 && lead != 0xe3) return {Class::kLetter, 1};
    if (missing(at + 1)) return {Class::kUnknown, 0};
    if (!continues(at + 1)) return {Class::kLetter, 1};
    if (lead == 0xc2) return {Class::kPunctuation, 2};
    const bool punctuation = byte(at + 1) == 0x80 || (lead == 0xe2 && byte(at + 1) == 0x81);
    if (!punctuation) return {Class::kLetter, 1};
    if (missing(at + 2)) return {Class::kUnknown, 0};
    return continues(at + 2) ? Character{Class::kPunctuation, 3} : Character{Class::kLetter, 1};
  }

  bool apostrophe(std::size_t at, Character c) const {
    return c.kind == Class::kPunctuation && (text[at] == '\'' || text.substr(at, c.bytes) == "\xe2\x80\x99");
  }

  /// Length of the run of characters of `kind` from `at`, no further than `limit`; `open` is set where more text
  /// could prolong it.
  std::size_t run(std::size_t at, Class kind, std::size_t limit, bool& open) const {
    std::size_t end = at;
    while (end < limit) {
      const Character c = character(end);
      if (c.kind == Class::kUnknown) {
        open = !complete;
        break;
      }
      if (c.kind == kind) {
        end += c.bytes;
        continue;
      }
      if (kind != Class::kLetter || !apostrophe(end, c)) break;
      const Character next = character(end + c.bytes);
      if (next.kind == Class::kUnknown) open = !complete;
      if (next.kind != Class::kLetter) break;
      end += c.bytes;
    }
    return std::min(end, limit);
  }
};

}  // namespace

std::size_t split_word(std::string_view text, std::size_t at, bool complete) {
  const Scanner scanner{text, complete};
  const std::size_t limit = at + kMaxWordBytes;
  bool open = false;
  std::size_t begin = at;
  if (kClasses[scanner.byte(at)] == Class::kBlank) {
    const std::size_t end = scanner.run(at, Class::kBlank, limit, open);
    if (open) return 0;
    if (end == text.size() || end == limit || text[end - 1] != ' ') return end;
    if (end - 1 > at) return end - 1;
    begin = end;
  }
  const Class kind = scanner.character(begin).kind;
  if (kind == Class::kUnknown) return 0;
  const std::size_t stop = kind == Class::kDigit ? begin + kMaxDigits : limit;
  const std::size_t end = scanner.run(begin, kind, stop, open);
  return open ? 0 : end;
}

std::size_t word_cut_after(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (is_blank(text[at]) && !is_blank(text[at - 1])) return at;
  }
  return text.size();
}

}  // namespace quipu
