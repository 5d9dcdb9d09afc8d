#include "text/word_tokenizer.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "text/sample_texts.h"

using namespace quipu;
using Ids = std::vector<std::int32_t>;

TEST_CASE("words: the most frequent first, equal ones by their bytes, after <unk> and <eos>") {
  const auto all = trained("words", "b a b\nc a d\tb");
  REQUIRE(all->vocab_size() == 6);
  CHECK(all->token_bytes(0) == "<unk>");
  CHECK(all->token_bytes(1) == "\n");
  CHECK(all->token_bytes(2) == "b");
  CHECK(all->token_bytes(3) == "a");
  CHECK(all->token_bytes(4) == "c");
  CHECK(all->token_bytes(5) == "d");
  CHECK(all->encode("b a b\nc a d\tb") == Ids{2, 3, 2, 1, 4, 3, 5, 2});

  const auto few = trained("words:4", "b a b\nc a d\tb");
  CHECK(few->vocab_size() == 4);
  CHECK(few->encode(" a  c\r\n\nx b") == Ids{3, 0, 1, 1, 0, 2});
  CHECK(trained("words:4000", "b a b")->vocab_size() == 4);
}

TEST_CASE("words: <unk> in a text is the unknown word, <eos> is a word") {
  const auto words = trained("words", "<unk> a <unk> <eos>\n");
  CHECK(words->vocab_size() == 4);
  CHECK(words->encode("<unk> <eos>\n") == Ids{0, 2, 1});
  CHECK(words->decode(Ids{0, 2, 1}) == "<unk> <eos>\n");
}

TEST_CASE("words: decoding puts one blank between words and none at the ends of lines") {
  const auto words = trained("words", "once upon a time there was");
  CHECK(words->decode(words->encode("  once upon\ta time\n there  was\n\na")) == "once upon a time\nthere was\n\na");
  CHECK(words->decode(Ids{}).empty());
}

TEST_CASE("words: a word cut by blocks is one word, but not across documents") {
  const auto trainer = make_trainer(parse_tokenizer_spec("words"));
  for (const std::string_view block : {"o", "nce", " upon", "\na", "b"}) trainer->text(block);
  trainer->end_document();
  trainer->text("c");
  trainer->end_document();
  const auto words = trainer->finish();
  CHECK(words->encode("once upon ab c") == Ids{4, 5, 2, 3});
}

TEST_CASE("words: a text of blanks has none") { CHECK_THROWS_AS(trained("words", " \n \n"), InputError); }

TEST_CASE("word counts: the frequent ones survive a limit on distinct words") {
  WordCounts counts(100);
  for (int i = 0; i < 5000; ++i) {
    counts.add("rare" + std::to_string(i));
    if (i % 3 == 0) counts.add("often");
    if (i % 4 == 0) counts.add("again");
  }
  const auto best = counts.most_frequent(2);
  REQUIRE(best.size() == 2);
  CHECK(best[0] == WordCounts::Count{"often", 1667});
  CHECK(best[1] == WordCounts::Count{"again", 1250});
  CHECK(counts.most_frequent().size() <= 100);
}
