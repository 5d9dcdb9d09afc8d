#include "text/pattern_syntax.h"

#include "base/error.h"
#include "text/escape.h"
#include "text/pattern.h"
#include "text/utf8.h"

namespace quipu {

namespace {

constexpr int kMaxDepth = 50;
constexpr std::string_view kLookAtBlank = "(?!\\S)";

/// What a part of an expression can match.
struct Part {
  bool letter = false;   // an ASCII letter
  bool space = false;    // a blank (U+0020)
  bool crosses = false;  // a letter, and later a blank
  bool optional = false;
};

class Reader {
 public:
  explicit Reader(std::string_view regex) : regex_(regex) {}

  PatternSyntax read() {
    const Part all = alternatives(0);
    if (at_ < regex_.size()) refuse(regex_.substr(at_, 1));
    return {std::move(out_), all.crosses || looks_ahead_, takes_any_space_};
  }

 private:
  [[noreturn]] void refuse(std::string_view part) const {
    throw InputError("pattern '{}': has '{}', which is not read here; rewrite it without", escape_text(regex_),
                     escape_text(part));
  }

  bool next_is(std::string_view text) const { return regex_.substr(at_).starts_with(text); }
  bool ended() const { return at_ >= regex_.size(); }

  std::string_view character() const {
    const std::size_t size = utf8_size(regex_.substr(at_));
    if (size == 0) throw InputError("pattern: is not UTF-8 at byte {}; repair the file", at_);
    return regex_.substr(at_, size);
  }

  void copy(std::size_t size) {
    out_ += regex_.substr(at_, size);
    at_ += size;
  }

  Part alternatives(int depth) {
    if (depth > kMaxDepth) throw InputError("pattern: is nested more than {} deep; simplify it", kMaxDepth);
    Part all;
    while (true) {
      int items = 0;
      const Part one = sequence(depth, items);
      if (depth == 0 && items == 1 && one.space && !one.optional) takes_any_space_ = true;
      all.letter |= one.letter;
      all.space |= one.space;
      all.crosses |= one.crosses;
      if (!next_is("|")) return all;
      copy(1);
    }
  }

  Part sequence(int depth, int& items) {
    Part all;
    while (!ended() && !next_is("|") && !next_is(")")) {
      if (next_is(kLookAtBlank)) {  // says the same of a blank and of the end of a text
        out_ += "(?!\\P{White_Space})";
        at_ += kLookAtBlank.size();
        ++items;
        continue;
      }
      Part one = item(depth);
      repetition(one);
      all.crosses |= one.crosses || (all.letter && one.space);
      all.letter |= one.letter;
      all.space |= one.space;
      all.optional = one.optional;
      ++items;
    }
    return all;
  }

  void repetition(Part& part) {
    const std::size_t begin = at_;
    if (next_is("*") || next_is("?")) part.optional = true;
    if (next_is("*") || next_is("+") || next_is("?")) {
      copy(1);
    } else if (next_is("{")) {
      const std::size_t end = regex_.find('}', at_);
      const std::string_view inside = end == regex_.npos ? "" : regex_.substr(at_ + 1, end - at_ - 1);
      if (inside.empty() || inside.find_first_not_of("0123456789,") != inside.npos) refuse("{");
      if (inside[0] == ',') refuse(regex_.substr(at_, end + 1 - at_));
      part.optional = true;  // it may want more than one
      copy(end + 1 - at_);
    }
    if (at_ == begin) return;
    if (next_is("+") || next_is("?")) copy(1);
    part.crosses |= part.letter && part.space;
  }

  Part item(int depth) {
    if (next_is("(")) return group(depth);
    const std::size_t from = out_.size();
    if (next_is("[")) {
      char_class(0);
    } else if (next_is("\\")) {
      escape();
    } else if (ended() || std::string_view("^$*+?{").find(regex_[at_]) != std::string_view::npos) {
      refuse(character());
    } else {
      copy(character().size());
    }
    return matches_of(std::string_view(out_).substr(from));
  }

  Part group(int depth) {
    constexpr std::string_view kOpenings[] = {"(?:", "(?i:", "(?=", "(?!", "(?>"};
    for (const std::string_view opening : kOpenings) {
      if (!next_is(opening)) continue;
      const bool ahead = opening == "(?=" || opening == "(?!";
      looks_ahead_ |= ahead;
      return inside(opening.size(), depth, opening == "(?i:", ahead);
    }
    if (next_is("(?") || next_is("(*")) refuse(regex_.substr(at_, 3));
    return inside(1, depth, false, false);
  }

  Part inside(std::size_t opening, int depth, bool any_case, bool ahead) {
    copy(opening);
    const bool before = any_case_;
    any_case_ = any_case_ || any_case;
    Part part = alternatives(depth + 1);
    any_case_ = before;
    if (!next_is(")")) throw InputError("pattern '{}': a group has no end; repair it", escape_text(regex_));
    copy(1);
    if (ahead) part = {};
    part.optional = true;  // it may be empty for all that is known
    return part;
  }

  /// A class, or (level > 0) one inside another, whose members join the outer one's.
  void char_class(int level) {
    if (level > kMaxDepth) refuse("[");
    ++at_;
    if (level == 0) out_ += '[';
    if (next_is("^")) {
      if (level > 0) refuse("[^");
      copy(1);
    }
    bool first = true;
    for (;; first = false) {
      if (ended()) throw InputError("pattern '{}': a class has no end; repair it", escape_text(regex_));
      if (next_is("]") && !first) break;
      if (next_is("&&") || next_is("--") || next_is("~~") || next_is("[:")) refuse(regex_.substr(at_, 2));
      if (next_is("[")) {
        char_class(level + 1);
      } else if (next_is("\\")) {
        escape();
      } else if (next_is("]")) {
        out_ += '\\';
        copy(1);
      } else {
        copy(character().size());
      }
    }
    ++at_;
    if (level == 0) out_ += ']';
  }

  void escape() {
    if (at_ + 1 >= regex_.size()) refuse("\\");
    const char kind = regex_[at_ + 1];
    if (kind == 's' || kind == 'S') {
      out_ += kind == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      at_ += 2;
    } else if (kind == 'p' || kind == 'P') {
      const std::size_t end = regex_.find('}', at_);
      if (regex_.substr(at_ + 2, 1) == "{" && end != regex_.npos) return copy(end + 1 - at_);
      copy(3);
    } else if (kind == 'u' && at_ + 6 <= regex_.size()) {
      out_ += fmt::format("\\x{{{}}}", regex_.substr(at_ + 2, 4));
      at_ += 6;
    } else if (kind == 'x' && regex_.substr(at_ + 2, 1) == "{") {
      const std::size_t end = regex_.find('}', at_);
      if (end == regex_.npos) refuse("\\x{");
      copy(end + 1 - at_);
    } else if (std::string_view("dDwWrntfx").find(kind) != std::string_view::npos) {
      copy(2);
    } else if (static_cast<unsigned char>(kind) < 0x80 && !is_alphanumeric(kind)) {
      copy(2);
    } else {
      refuse(regex_.substr(at_, 2));
    }
  }

  static bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }

  Part matches_of(std::string_view part) const {
    const Pattern pattern = Pattern::of_pcre2(fmt::format("{}{}{}", any_case_ ? "(?i:" : "(?:", part, ")"));
    PatternScratch scratch;
    const auto matches = [&](char c) {
      return pattern.find({&c, 1}, false, scratch).kind == Pattern::Found::Kind::kMatch;
    };
    Part known;
    known.space = matches(' ');
    for (char c = 'a'; c <= 'z'; ++c) known.letter = known.letter || matches(c) || matches(static_cast<char>(c - 32));
    return known;
  }

  std::string_view regex_;
  std::size_t at_ = 0;
  std::string out_;
  bool any_case_ = false;
  bool looks_ahead_ = false;
  bool takes_any_space_ = false;
};

}  // namespace

PatternSyntax read_pattern(std::string_view regex) {
  constexpr std::size_t kMaxBytes = 1 << 16;
  if (regex.size() > kMaxBytes) {
    throw InputError("pattern: has {} bytes, {} is the most; simplify it", regex.size(), kMaxBytes);
  }
  return Reader(regex).read();
}

}  // namespace quipu
