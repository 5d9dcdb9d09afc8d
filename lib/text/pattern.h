#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace quipu {

/// What one thread needs to search with patterns.
class PatternScratch {
 public:
  PatternScratch();
  ~PatternScratch();
  PatternScratch(const PatternScratch&) = delete;
  PatternScratch& operator=(const PatternScratch&) = delete;

 private:
  friend class Pattern;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// A compiled regular expression (PCRE2, with its just-in-time compiler where that is there) for well-formed UTF-8.
/// Const and safe to use from several threads, each with its own scratch.
class Pattern {
 public:
  struct Found {
    enum class Kind { kNone, kMatch, kOpen };
    Kind kind = Kind::kNone;
    std::size_t begin = 0;  ///< of the match; for kOpen: before this, no match begins
    std::size_t end = 0;
  };

  /// As read_pattern; InputError also where the expression can match nothing at all, or is no regular expression.
  explicit Pattern(std::string_view regex);
  /// An expression in PCRE2's own syntax, taken as it is.
  static Pattern of_pcre2(std::string_view regex);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// The first match in `text`. Where the text is `open`, more of it may follow: a match is only returned where nothing
  /// that follows could change it, else kOpen. InputError where it takes too many steps.
  Found find(std::string_view text, bool open, PatternScratch& scratch) const;

  /// Text may be cut between an ASCII letter and the blank (U+0020) after it: no match reaches over that place, and
  /// what is found before and after it stays the same.
  bool keeps_blanks_apart() const { return keeps_blanks_apart_; }
  /// A match begins at every blank (U+0020) that is not inside one.
  bool takes_any_space() const { return takes_any_space_; }

 private:
  struct Code;
  Pattern(std::string_view pcre2, bool allow_empty);

  std::unique_ptr<Code> code_;
  bool keeps_blanks_apart_ = false;
  bool takes_any_space_ = false;
};

}  // namespace quipu
