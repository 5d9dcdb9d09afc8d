#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "text/sample_texts.h"

using namespace quipu;

namespace {

const std::vector<std::string> kLossless = {"bytes", "bpe:400", "unigram:400"};

const Tokenizer& sample_tokenizer(const std::string& spec) {
  static std::vector<std::pair<std::string, std::unique_ptr<Tokenizer>>> made;
  for (const auto& [name, tokenizer] : made) {
    if (name == spec) return *tokenizer;
  }
  return *made.emplace_back(spec, trained(spec, sample_prose())).second;
}

void check_round_trip(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  for (const std::int32_t id : tokens) REQUIRE((id >= 0 && id < tokenizer.vocab_size()));
  if (tokenizer.decode(tokens) != text) FAIL("not restored: " << text);
}

/// Encodes in blocks of `block` bytes, each after what was left of the one before.
std::vector<std::int32_t> encode_in_blocks(const Tokenizer& tokenizer, std::string_view text, std::size_t block) {
  std::vector<std::int32_t> tokens;
  std::string open;
  for (std::size_t at = 0; at < text.size(); at += block) {
    open += text.substr(at, block);
    open.erase(0, tokenizer.encode_some(open, {at == 0, at + block >= text.size()}, tokens));
  }
  REQUIRE(open.empty());
  return tokens;
}

}  // namespace

TEST_CASE("tokenizer: every byte and every pair of bytes comes back") {
  for (const std::string& spec : kLossless) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    for (unsigned a = 0; a < 256; ++a) {
      check_round_trip(tokenizer, std::string(1, static_cast<char>(a)));
      for (unsigned b = 0; b < 256; ++b) check_round_trip(tokenizer, {static_cast<char>(a), static_cast<char>(b)});
    }
  }
}

TEST_CASE("tokenizer: strings that are special elsewhere stay text") {
  using namespace std::string_literals;
  const std::vector<std::string> texts = {""s,
                                          " "s,
                                          "\0"s,
                                          "\0\0a\0"s,
                                          "\r\n"s,
                                          "a\r\n\r\nb\r"s,
                                          "  a  b  "s,
                                          "\n\n\n   \t x"s,
                                          "<unk>"s,
                                          "<s>a</s>"s,
                                          "<0x41>"s,
                                          "<pad> <|endoftext|>"s,
                                          "\u2581a\u2581\u2581"s,
                                          "\u2047\u2585"s,
                                          "\ufeffx"s,
                                          "\ufffd"s,
                                          "e\u0301 \u00e9 \ufb01 \uff21"s,
                                          "\xff\xfe\x80"s,
                                          "\xe2\x82"s,
                                          "\xc2 x\xe3"s,
                                          "\xed\xa0\x80"s,
                                          "don\u2019t \u201cstop\u201d\u3002"s,
                                          "'' 'a' a'"s};
  for (const std::string& spec : kLossless) {
    INFO(spec);
    for (const std::string& text : texts) check_round_trip(sample_tokenizer(spec), text);
  }
}

TEST_CASE("tokenizer: random bytes and characters come back, long runs too") {
  for (const std::string& spec : kLossless) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      check_round_trip(tokenizer, random_bytes(seed, seed));
      check_round_trip(tokenizer, random_bytes(seed, seed, 40));
      check_round_trip(tokenizer, random_unicode(seed, seed));
    }
    check_round_trip(tokenizer, random_bytes(7, 100000));
    for (const char c : {'a', ' ', '\n', '7', '-', '\0', '\x80', '\xe2'}) {
      check_round_trip(tokenizer, std::string(3001, c));
    }
  }
}

TEST_CASE("tokenizer: encoding in blocks equals encoding the whole") {
  const std::string text = sample_prose(3, 800) + random_unicode(1, 500) + random_bytes(2, 1000) +
                           std::string(700, ' ') + std::string(700, 'x') + "'" + std::string(300, '9') + "\xe2\x80";
  for (const std::string spec : {"bytes", "bpe:400", "unigram:400", "words:40"}) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    const std::vector<std::int32_t> whole = tokenizer.encode(text);
    for (const std::size_t block : {1, 2, 3, 7, 64, 1000, 100000}) {
      INFO(block);
      CHECK(encode_in_blocks(tokenizer, text, block) == whole);
    }
  }
}

TEST_CASE("tokenizer: a text can be encoded in parts that are cut where cut_after says") {
  const std::string text = sample_prose(4, 300) + random_bytes(9, 2000, 64) + random_unicode(2, 300);
  for (const std::string spec : {"bytes", "bpe:400", "unigram:400", "words:40"}) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    const std::vector<std::int32_t> whole = tokenizer.encode(text);
    for (std::size_t from = 1; from <= text.size() + 1; ++from) {
      const std::size_t cut = tokenizer.cut_after(text, from);
      REQUIRE(cut >= std::min(from, text.size()));
      std::vector<std::int32_t> parts;
      tokenizer.encode(std::string_view(text).substr(0, cut), parts);
      tokenizer.encode(std::string_view(text).substr(cut), parts);
      REQUIRE(parts == whole);
    }
  }
}

TEST_CASE("tokenizer: rebuilt from its data it is the same") {
  const std::string text = sample_prose(5, 500) + random_bytes(3, 500);
  for (const std::string spec : {"bytes", "bpe:400", "unigram:400", "words:40", "words"}) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    const TokenizerData data = tokenizer.serialize();
    const auto again = make_tokenizer(data);
    CHECK(again->serialize() == data);
    CHECK(again->digest() == tokenizer.digest());
    CHECK(again->kind() == tokenizer.kind());
    CHECK(again->vocab_size() == tokenizer.vocab_size());
    CHECK(again->encode(text) == tokenizer.encode(text));
    CHECK(describe(*again) == (spec == "words" ? describe(tokenizer) : spec));
  }
  CHECK(sample_tokenizer("bpe:400").digest() != sample_tokenizer("unigram:400").digest());
  CHECK(sample_tokenizer("bpe:400").digest() != trained("bpe:399", sample_prose())->digest());
  CHECK(sample_tokenizer("bytes").digest() != sample_tokenizer("words").digest());
}

TEST_CASE("tokenizer: an id outside the vocabulary is an error with both numbers") {
  for (const std::string spec : {"bytes", "bpe:400", "words:40"}) {
    INFO(spec);
    const Tokenizer& tokenizer = sample_tokenizer(spec);
    CHECK_THROWS_AS((void)tokenizer.token_bytes(-1), InputError);
    CHECK_THROWS_AS((void)tokenizer.decode(std::vector<std::int32_t>{0, 400}), InputError);
  }
  CHECK_THROWS_WITH((void)sample_tokenizer("bytes").token_bytes(256),
                    "token id 256 is outside the vocabulary (size 256); encode the text with the model's tokenizer");
}

TEST_CASE("tokenizer: data that make none are errors") {
  CHECK_THROWS_AS(make_tokenizer({"runes", {}}), InputError);
  CHECK_THROWS_AS(make_tokenizer({"words", {}}), InputError);
  CHECK_THROWS_AS(make_tokenizer({"words", {{"words", "a\nb"}}}), InputError);
  CHECK_THROWS_AS(make_tokenizer({"words", {{"words", "a\n\n"}}}), InputError);
  CHECK_THROWS_AS(make_tokenizer({"words", {{"words", "a\nb\na\n"}}}), InputError);
  for (const std::string spec : {"bpe:400", "unigram:400"}) {
    INFO(spec);
    const TokenizerData good = sample_tokenizer(spec).serialize();
    for (std::size_t blob = 0; blob < good.blobs.size(); ++blob) {
      INFO(good.blobs[blob].name);
      TokenizerData bad = good;
      bad.blobs[blob].bytes.pop_back();
      if (good.blobs[blob].name == "pieces") CHECK_THROWS_AS(make_tokenizer(bad), InputError);
      bad.blobs[blob].bytes.resize(4 * 300);
      CHECK_THROWS_AS(make_tokenizer(bad), InputError);
      bad.blobs.erase(bad.blobs.begin() + static_cast<std::ptrdiff_t>(blob));
      CHECK_THROWS_AS(make_tokenizer(bad), InputError);
    }
    TokenizerData swapped = good;
    std::swap(swapped.blobs[0].bytes[0], swapped.blobs[0].bytes[1]);
    CHECK_THROWS_AS(make_tokenizer(swapped), InputError);
  }
}
