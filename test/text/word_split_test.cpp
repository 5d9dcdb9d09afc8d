#include "text/word_split.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "text/sample_texts.h"

using namespace quipu;
using Words = std::vector<std::string>;

namespace {

Words words_of(std::string_view text) {
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = split_word(text, at, true);
    REQUIRE(end > at);
    REQUIRE(end <= text.size());
    REQUIRE(end - at <= kMaxWordBytes);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

TEST_CASE("word_split: words take the space before them") {
  CHECK(words_of("Once upon a time") == Words{"Once", " upon", " a", " time"});
  CHECK(words_of("  a   b ") == Words{" ", " a", "  ", " b", " "});
  CHECK(words_of("a\nb\n\n c\t d") == Words{"a", "\n", "b", "\n\n", " c", "\t", " d"});
}

TEST_CASE("word_split: apostrophes inside words belong to them") {
  CHECK(words_of("I don't 'know' it's o'") == Words{"I", " don't", " '", "know", "'", " it's", " o", "'"});
  CHECK(words_of("don\u2019t \u2018x\u2019") == Words{"don\u2019t", " \u2018", "x", "\u2019"});
}

TEST_CASE("word_split: digits, punctuation and letters part, letters of all scripts do not") {
  CHECK(words_of("in 12345, (x2)!") == Words{"in", " 123", "45", ",", " (", "x", "2", ")!"});
  CHECK(words_of("caf\u00e9 \u65e5\u672c\u3002\u00abja\u00bb \u201cso\u201d") ==
        Words{"caf\u00e9", " \u65e5\u672c", "\u3002\u00ab", "ja", "\u00bb", " \u201c", "so", "\u201d"});
}

TEST_CASE("word_split: long words are cut") {
  CHECK(words_of(std::string(600, 'x')) == Words{std::string(256, 'x'), std::string(256, 'x'), std::string(88, 'x')});
  CHECK(words_of(std::string(300, ' ') + "x") == Words{std::string(256, ' '), std::string(43, ' '), " x"});
}

TEST_CASE("word_split: without the end of the text a word is given only where it is certain") {
  const std::string text = sample_prose(8, 300) + random_unicode(8, 300) + random_bytes(8, 500) + "it's \xe2\x80\x99s";
  for (std::size_t at = 0; at < text.size(); at = split_word(text, at, true)) {
    const std::size_t end = split_word(text, at, true);
    for (std::size_t shown = at + 1; shown <= std::min(end + 8, text.size()); ++shown) {
      const std::size_t early = split_word(std::string_view(text).substr(0, shown), at, false);
      REQUIRE((early == 0 || early == end));
      if (shown == end + 8) REQUIRE(early == end);
    }
  }
}
