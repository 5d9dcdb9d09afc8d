#include "text/utf8_stream.h"

#include <doctest/doctest.h>

#include "text/byte_tokenizer.h"
#include "text/sample_texts.h"

using namespace quipu;

TEST_CASE("utf8 stream: characters come whole") {
  Utf8Stream stream;
  CHECK(stream.push("a\xe2") == "a");
  CHECK(stream.push("\x82") == "");
  CHECK(stream.push("\xac"
                    "b\xf0\x9f") ==
        "\xe2\x82\xac"
        "b");
  CHECK(stream.push("\x98\x80\xc3") == "\xf0\x9f\x98\x80");
  CHECK(stream.flush() == "\xc3");
  CHECK(stream.flush().empty());
}

TEST_CASE("utf8 stream: what is no UTF-8 is not held back") {
  using namespace std::string_literals;
  for (const std::string& bytes : {"\x80"s, "\xff"s, "\xc0"s, "\xc1"s, "\xf5"s, "\xe0\x80"s, "\xed\xa0"s, "\xf0\x80"s,
                                   "\xf4\x90"s, "\xe2x"s, "\x80\x80\x80\x80"s, "\0"s}) {
    CHECK(unfinished_utf8(bytes) == 0);
    CHECK(Utf8Stream().push(bytes) == bytes);
  }
  for (const std::string& bytes : {"\xc2"s, "\xdf"s, "\xe0\xa0"s, "\xed\x9f"s, "\xf0\x90\x80"s, "\xf4\x8f\xbf"s}) {
    CHECK(unfinished_utf8("x" + bytes) == bytes.size());
  }
}

TEST_CASE("utf8 stream: byte by byte, all comes out in order and no piece ends inside a character") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = seed % 2 == 0 ? random_unicode(seed, 60) : random_bytes(seed, 60);
    Utf8Stream stream;
    std::string shown;
    for (const char c : text) {
      shown += stream.push({&c, 1});
      if (seed % 2 == 0) CHECK(unfinished_utf8(shown) == 0);
      CHECK(text.starts_with(shown));
    }
    CHECK(shown + stream.flush() == text);
  }
}

TEST_CASE("token stream: bytes of characters and blanks of words") {
  const ByteTokenizer bytes;
  TokenStream characters(bytes);
  CHECK(characters.push(0xc3).empty());
  CHECK(characters.push(0xa9) == "\u00e9");
  CHECK(characters.push(0xc3).empty());
  CHECK(characters.flush() == "\xc3");

  const auto words = trained("words", "a b");
  TokenStream from_start(*words);
  CHECK(from_start.push(2) == "a");
  TokenStream after_prompt(*words, 3);
  CHECK(after_prompt.push(2) == " a");
  CHECK(after_prompt.push(1) == "\n");
  CHECK(after_prompt.push(3) == "b");
}
