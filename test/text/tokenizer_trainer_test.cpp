#include "text/tokenizer_trainer.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>

#include "base/error.h"
#include "text/sample_texts.h"
#include "text/subword_trainer.h"

using namespace quipu;

namespace {

std::string message_of(const std::string& spec, const std::string& text) {
  try {
    trained(spec, text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("trainer: the kinds and sizes that it reads") {
  CHECK(parse_tokenizer_spec("bytes").kind == "bytes");
  CHECK(parse_tokenizer_spec("words").size == 0);
  CHECK(parse_tokenizer_spec("words:33278").size == 33278);
  CHECK(parse_tokenizer_spec("bpe:4096").size == 4096);
  CHECK(parse_tokenizer_spec("unigram:300").kind == "unigram");
  for (const std::string bad : {"", "byte", "bytes:256", "bpe", "bpe:", "bpe:x", "bpe:-5", "bpe:0", "bpe:4096x",
                                "bpe: 400", "unigram", "words:", "words:0", "BPE:4096", ":400"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_tokenizer_spec(bad), UsageError);
  }
}

TEST_CASE("trainer: a size outside its range is an error with all the numbers") {
  for (const std::string bad : {"bpe:256", "bpe:1000001", "unigram:1", "words:2", "bpe:99999999999999999999"}) {
    INFO(bad);
    CHECK_THROWS_AS(make_trainer(parse_tokenizer_spec(bad)), UsageError);
  }
  CHECK(message_of("bpe:256", "") ==
        "tokenizer: bpe: vocabulary size 256 is outside 257 to 1000000; give another size, as in bpe:4096");
}

TEST_CASE("trainer: the vocabulary has exactly the size asked for, bytes first") {
  for (const std::string kind : {"bpe", "unigram"}) {
    for (const std::int64_t size : {257, 300, 411}) {
      const std::string spec = kind + ":" + std::to_string(size);
      INFO(spec);
      const auto tokenizer = trained(spec, sample_prose());
      REQUIRE(tokenizer->vocab_size() == size);
      for (std::int32_t id = 0; id < size; ++id) {
        const std::string_view piece = tokenizer->token_bytes(id);
        if (id < 256) CHECK(piece == std::string(1, static_cast<char>(id)));
        if (id >= 256) CHECK((piece.size() > 1 && piece.size() <= static_cast<std::size_t>(kMaxPieceBytes)));
      }
      CHECK_FALSE(tokenizer->end_of_document().has_value());
    }
  }
}

TEST_CASE("trainer: learned pieces shorten the text") {
  const std::string text = sample_prose(2);
  for (const std::string spec : {"bpe:400", "unigram:400"}) {
    INFO(spec);
    CHECK(3 * trained(spec, sample_prose())->encode(text).size() < text.size());
  }
}

TEST_CASE("trainer: the same text gives the same tokenizer, in any blocks and on any threads") {
  const std::string text = sample_prose(6) + random_bytes(6, 3000);
  const int threads = omp_get_max_threads();
  for (const std::string spec : {"bpe:380", "unigram:380", "words:50"}) {
    INFO(spec);
    const TokenizerData whole = trained(spec, text)->serialize();
    omp_set_num_threads(threads == 1 ? 2 : 1);
    const auto trainer = make_trainer(parse_tokenizer_spec(spec));
    for (std::size_t at = 0; at < text.size(); at += 13) trainer->text(std::string_view(text).substr(at, 13));
    trainer->end_document();
    CHECK(trainer->finish()->serialize() == whole);
    omp_set_num_threads(threads);
  }
}

TEST_CASE("trainer: a text too small for the size says what is possible, and that is") {
  for (const std::string kind : {"bpe", "unigram"}) {
    INFO(kind);
    const std::string text = "a small text, a text too small";
    const std::string message = message_of(kind + ":4096", text);
    INFO(message);
    const std::string start = "tokenizer: " + kind + ":4096: the training text gives at most ";
    REQUIRE(message.starts_with(start));
    const std::string largest = message.substr(start.size(), message.find(' ', start.size()) - start.size());
    CHECK(message.ends_with(" pieces; give " + kind + ":" + largest + " or more text"));
    CHECK(trained(kind + ":" + largest, text)->vocab_size() == std::stoll(largest));
    CHECK_THROWS_AS(trained(kind + ":" + largest + "0", text), UsageError);
  }
}

TEST_CASE("trainer: texts with hardly a word") {
  using namespace std::string_literals;
  for (const std::string kind : {"bpe", "unigram"}) {
    INFO(kind);
    const auto nothing = make_trainer(parse_tokenizer_spec(kind + ":300"));
    CHECK_THROWS_AS(nothing->finish(), InputError);
    for (const std::string& text : {"a"s, "\0"s, "\n\n"s, "\xff"s, std::string(1000, 'a'), "<unk> <unk>"s}) {
      CHECK_THROWS_AS(trained(kind + ":300000", text), UsageError);
    }
    CHECK(trained(kind + ":258", "<unk> <unk> <s> <s> \u2581\u2581 \u2581\u2581")->vocab_size() == 258);
  }
}

TEST_CASE("trainer: bytes need no text") {
  const auto trainer = make_trainer({"bytes", 0});
  CHECK_FALSE(trainer->needs_text());
  CHECK(trainer->finish()->vocab_size() == 256);
  CHECK(make_trainer({"words", 0})->needs_text());
}
