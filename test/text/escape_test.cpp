#include "text/escape.h"

#include <doctest/doctest.h>

using quipu::escape_text;

TEST_CASE("escaped text fits a column of a table and can be told apart") {
  CHECK(escape_text("plain text") == "plain text");
  CHECK(escape_text("a\tb\nc\r\\") == "a\\tb\\nc\\r\\\\");
  CHECK(escape_text(std::string_view("\0\x01\x7f", 3)) == "\\x00\\x01\\x7f");
  CHECK(escape_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(escape_text("\xc3") == "\\xc3");
  CHECK(escape_text("\xe2\x82z") == "\\xe2\\x82z");
  CHECK(escape_text("\xc0\xaf\xed\xa0\x80") == "\\xc0\\xaf\\xed\\xa0\\x80");
}
