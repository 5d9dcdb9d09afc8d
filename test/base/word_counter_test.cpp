#include "base/word_counter.h"

#include <doctest/doctest.h>

TEST_CASE("word counter: words may span pieces, but not an end") {
  quipu::WordCounter counter;
  counter.add("  one tw");
  counter.add("o\tthree\n");
  counter.add("");
  counter.add("four");
  CHECK(counter.words() == 4);
  counter.end_word();
  counter.add("five");
  CHECK(counter.words() == 5);
  CHECK(counter.bytes() == 8 + 8 + 4 + 4);
}
