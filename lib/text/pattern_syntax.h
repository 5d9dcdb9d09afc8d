#pragma once
#include <string>
#include <string_view>

namespace quipu {

/// A regular expression of a pre-tokenizer, in PCRE2's syntax, and what its text alone tells.
struct PatternSyntax {
  std::string pcre2;
  /// A match may have a blank somewhere after an ASCII letter. (True where that could not be told.)
  bool letter_before_space = true;
  /// A match begins at any blank that is not inside one.
  bool takes_any_space = false;
};

/// Reads an expression in the syntax that Oniguruma and Rust's crates share: literals, escapes, classes (also one
/// inside another), groups, alternatives, repetitions, (?i:...), (?=...) and (?!...). Blanks are Unicode's White_Space.
///
/// InputError naming the part where it has anything else: looking back, anchors, word boundaries, back-references,
/// named groups, intersections of classes. A position where a match ended is then always one where a text may begin.
PatternSyntax read_pattern(std::string_view regex);

}  // namespace quipu
