#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"

namespace quipu {

/// The expression with which GPT-2, and every byte-level tokenizer that says nothing else, cuts text into words.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts well-formed UTF-8 into words by one pattern after another, each inside the pieces of the one before: every
/// match is a piece, and so is what stands between two. With no pattern at all a text is one word.
class PreTokenizer {
 public:
  /// InputError as Pattern.
  explicit PreTokenizer(std::vector<std::string> patterns);

  const std::vector<std::string>& patterns() const { return sources_; }

  /// Calls word(view) for each word in turn, and returns where the last one ended: all of `text`, or where it is
  /// `open`, that part of it where more text could change no word. For an open text also calls mark(place) where text
  /// may begin anew, in ascending order; the last such place is the one that is returned.
  template <typename Word, typename Mark>
  std::size_t cut(std::string_view text, bool open, PatternScratch& scratch, Word&& word, Mark&& mark) const {
    return cut_stage(0, text, 0, text.size(), open, scratch, word, mark);
  }

  /// Whether words always end between an ASCII letter and the blank (U+0020) after it, and text may be cut there.
  bool cuts_before_blanks() const { return cuts_before_blanks_; }

 private:
  template <typename Word, typename Mark>
  std::size_t cut_stage(std::size_t stage, std::string_view text, std::size_t begin, std::size_t end, bool open,
                        PatternScratch& scratch, Word& word, Mark& mark) const {
    if (begin == end) return end;
    if (stage == patterns_.size()) {
      if (open) return begin;
      word(text.substr(begin, end - begin));
      return end;
    }
    while (begin < end) {
      const Pattern::Found found = patterns_[stage].find(text.substr(begin, end - begin), open, scratch);
      if (found.kind != Pattern::Found::Kind::kMatch) {
        const bool partly = found.kind == Pattern::Found::Kind::kOpen;
        return cut_stage(stage + 1, text, begin, partly ? begin + found.begin : end, open, scratch, word, mark);
      }
      cut_stage(stage + 1, text, begin, begin + found.begin, false, scratch, word, mark);
      cut_stage(stage + 1, text, begin + found.begin, begin + found.end, false, scratch, word, mark);
      begin += found.end;
      if (open) mark(begin);
    }
    return end;
  }

  std::vector<std::string> sources_;
  std::vector<Pattern> patterns_;
  bool cuts_before_blanks_ = false;
};

}  // namespace quipu
