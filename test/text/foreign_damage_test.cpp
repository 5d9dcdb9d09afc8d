#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"
#include "text/byte_bpe_files.h"
#include "text/charsmap.h"
#include "text/foreign_samples.h"
#include "text/pre_tokenizer.h"
#include "text/sample_texts.h"
#include "text/sentence_tokenizer.h"
#include "text/world_tokenizer.h"

using namespace quipu;

namespace {

/// Reads what is bad, and returns the one line that it gives.
template <typename Read>
std::string error_of(Read&& read) {
  try {
    read();
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == text.npos);
    CHECK(text.size() < 600);
    return text;
  }
  return "nothing was wrong";
}

std::string json_error(const std::string& text) {
  return error_of([&] { ByteBpeTokenizer(read_tokenizer_json(text)); });
}
std::string gpt2_error(const std::string& vocab, const std::string& merges) {
  return error_of([&] { ByteBpeTokenizer(read_gpt2_files(vocab, merges)); });
}
std::string sentence_error(const std::string& bytes) {
  return error_of([&] { SentenceTokenizer(read_sentence_model(bytes)); });
}
std::string world_error(const std::string& text) {
  return error_of([&] { WorldTokenizer(read_world_vocabulary(text)); });
}

void check_has(const std::string& error, std::string_view part) {
  INFO(error);
  CHECK(error.find(part) != error.npos);
}

std::string pre_tokenizer(const std::string& json) { return R"("pre_tokenizer": )" + json + ", "; }

std::string split(const std::string& regex, const char* behavior = "Isolated") {
  return pre_tokenizer(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + regex +
                       R"("}, "behavior": ")" + behavior +
                       R"("}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
}

}  // namespace

TEST_CASE("foreign files: damaged JSON is one clear line") {
  const SmallBpe bpe = small_bpe();
  const std::string good = bpe.vocab_json();
  check_has(gpt2_error("[1]", ""), "no JSON object");
  check_has(gpt2_error("{\"a\": 1", ""), "no JSON in UTF-8 from byte");
  check_has(gpt2_error("{\"\xff\": 1}", ""), "no JSON in UTF-8 from byte");
  check_has(gpt2_error(R"({"a": "b"})", ""), "'a' has no whole number");
  check_has(gpt2_error(R"({"a": 1e99})", ""), "'a' has no whole number");
  check_has(json_error(std::string(1'000'000, '[')), "no JSON object");
  check_has(json_error("{\"a\": " + std::string(1'000'000, '[')), "more than 64 deep");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  check_has(json_error(deep), "more than 64 deep");
  std::string many = "{\"model\": {\"a\": [";
  for (int i = 0; i < 300'000; ++i) many += "0,";
  check_has(json_error(many), "more than 200000 values");
  check_has(gpt2_error(R"({"a": 99999999999999999999})", ""), "'a' has no whole number");
  check_has(gpt2_error(R"({"a": 2147483648, "b": 0})", ""), "id 2147483648, outside 0 to 1003 for 2 tokens");
  check_has(gpt2_error(R"({"a": -1})", ""), "id -1, outside 0 to");
  check_has(gpt2_error(R"({"": 1})", ""), "token 1 is empty");
  check_has(gpt2_error(R"({"a": 1, "b": 1})", ""), "'b' and 'a' have the same id 1");
  check_has(gpt2_error(R"({"a": 1, "a": 2})", ""), "'a' is there twice");
  check_has(gpt2_error(R"({"a": 1})", ""), "no token for byte 0 of the 256");
  check_has(gpt2_error(R"({"\u65e5": 1})", ""), "not spelled in the bytes' alphabet");
  check_has(gpt2_error(good, "#version\na b c\n"), "merge 0: 'a b c' is not two tokens");
  check_has(gpt2_error(good, "ab\n"), "merge 0: 'ab' is not two tokens");
  check_has(gpt2_error(good, "h e\nx y\n"), "merge 1: 'xy' is not in the vocabulary of 266 tokens");
  check_has(gpt2_error(good, "h e\nh e\n"), "merge 1: joins the same tokens");
}

TEST_CASE("foreign files: a tokenizer.json that asks for what is not read is refused by name") {
  const SmallBpe bpe = small_bpe();
  check_has(json_error("{}"), "has no model");
  check_has(json_error(R"({"model": []})"), "model: is no object");
  check_has(json_error(bpe.tokenizer_json("")), "has no ByteLevel");
  check_has(json_error(R"({"model": {"type": "WordPiece"}})"), "\"WordPiece\"");
  check_has(json_error(bpe.tokenizer_json(kByteLevel, R"("byte_fallback": true, )")), "byte_fallback true");
  check_has(json_error(bpe.tokenizer_json(kByteLevel, R"("dropout": 0.1, )")), "dropout 0.1");
  check_has(json_error(bpe.tokenizer_json(std::string(kByteLevel) + R"("normalizer": {"type": "Lowercase"}, )")),
            "Lowercase");
  check_has(json_error(bpe.tokenizer_json(std::string(kByteLevel) + R"("normalizer": 3.5, )")),
            "normalizer: has no type");
  check_has(json_error(bpe.tokenizer_json(pre_tokenizer(R"({"type": "Metaspace"})"))), "Metaspace");
  check_has(json_error(bpe.tokenizer_json(split("a", "MergedWithNext"))), "MergedWithNext");
  check_has(json_error(bpe.tokenizer_json(R"("decoder": {"type": "WordPiece"}, )")), "decoder: WordPiece");
  const auto added = [&](const std::string& token) {
    return json_error(bpe.tokenizer_json(std::string(kByteLevel) + R"("added_tokens": [)" + token + "], "));
  };
  check_has(added("7"), "number 0 has no id or no content");
  check_has(added(R"({"id": 4294967296, "content": "x"})"), "has id 4294967296");
  check_has(added(R"({"id": 65, "content": "x"})"), "added token 65: is 'x', but 'A'");
  check_has(added(R"({"id": 300, "content": ""})"), "token 300 is empty");
  check_has(added(R"({"id": 300, "content": "x", "lstrip": true})"), "lstrip");
  check_has(added(R"({"id": 300, "content": "x"}, {"id": 300, "content": "x"})"), "there twice");
  check_has(added(R"({"id": 300, "content": "x"}, {"id": 301, "content": "x"})"), "there twice");
}

TEST_CASE("foreign files: patterns that cannot stream or run wild are refused") {
  const SmallBpe bpe = small_bpe();
  const auto error = [&](const std::string& regex) { return json_error(bpe.tokenizer_json(split(regex))); };
  check_has(error("(?<=a)b"), "(?<");
  check_has(error("^a"), "has '^'");
  check_has(error("a$"), "has '$'");
  check_has(error("\\\\ba"), "has '\\\\b'");
  check_has(error("(a)\\\\1"), "has '\\\\1'");
  check_has(error("(?P<x>a)"), "(?P");
  check_has(error("(*LIMIT_MATCH=1)a"), "has");
  check_has(error("[a&&b]"), "&&");
  check_has(error("[a[^b]]"), "[^");
  check_has(error("a*"), "can match nothing at all");
  check_has(error("(a"), "group has no end");
  check_has(error("[a"), "class has no end");
  check_has(error("\\\\p{Nonsense}"), "no regular expression");
  check_has(error(std::string(100'000, 'a')), "100000 bytes");
  check_has(error(std::string(1000, '(')), "nested more than 50 deep");
  const PreTokenizer wild({"(?:a+)+b"});
  PatternScratch scratch;
  check_has(error_of([&] {
              wild.cut(
                  std::string(3000, 'a') + "cb", false, scratch, [](std::string_view) {}, [](std::size_t) {});
            }),
            "too many steps");
}

TEST_CASE("foreign files: classes, blanks and case mean what they do in tokenizer.json") {
  const auto words = [](const std::string& regex, std::string_view text) {
    PatternScratch scratch;
    std::string shown;
    PreTokenizer({regex}).cut(
        text, false, scratch, [&](std::string_view word) { shown += fmt::format("[{}]", word); }, [](std::size_t) {});
    return shown;
  };
  CHECK(words("\\s+", "a\u3000b\u180ec\u0085d") == "[a][\u3000][b\u180ec][\u0085][d]");
  CHECK(words(" ?[^(\\s|[.,!?])]+", "a|b, c(d)") == "[a][|][b][,][ c][(][d][)]");
  CHECK(words("(?i:'S)|\\p{L}+", "a's'S'x") == "[a]['s]['S]['][x]");
  CHECK(words("[\\S]", "a b") == "[a][ ][b]");
  CHECK(words("\\p{N}{1,3}", "12345") == "[123][45]");
  CHECK(PreTokenizer({std::string(kGpt2Pattern)}).cuts_before_blanks());
  CHECK_FALSE(PreTokenizer({"\\w+ ?|\\s+"}).cuts_before_blanks());
  CHECK_FALSE(PreTokenizer({"\\p{L}+"}).cuts_before_blanks());
  CHECK_FALSE(PreTokenizer({"(?:[a-z]| )+|\\s"}).cuts_before_blanks());
  CHECK_FALSE(PreTokenizer({"\\p{L}+(?= x)|\\s+"}).cuts_before_blanks());
}

TEST_CASE("foreign files: damaged SentencePiece models are one clear line") {
  const std::string good = sentence_file(2, true, false, sentence_pieces());
  CHECK(sentence_error(good) == "nothing was wrong");
  int damaged = 0;
  for (std::size_t size = 0; size < good.size(); ++size)
    damaged += sentence_error(good.substr(0, size)) != "nothing was wrong";
  // A file that ends between two pieces, the 256 of bytes among them, may be one.
  CHECK(damaged > static_cast<int>(good.size()) - static_cast<int>(sentence_pieces().size()) - 256 - 10);
  check_has(sentence_error(varint(1 << 3 | 2) + varint(~0ULL)),
            "a field of 18446744073709551615 bytes, and 0 are left");
  check_has(sentence_error(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)), "byte");
  check_has(sentence_error(good + sentence_piece("he", -1)), "'he' is there twice");
  check_has(sentence_error(good + sentence_piece("", -1)), "is empty");
  check_has(sentence_error(good + sentence_piece("zz", 0, 2)), "2 unknown pieces");
  check_has(sentence_error(good + sentence_piece("zz", 0, 9)), "type 9, outside 1 to 6");
  check_has(sentence_error(good + sentence_piece("zz", 0, 6)), "'zz' is no byte");
  check_has(sentence_error(good + sentence_piece("zz", std::numeric_limits<float>::quiet_NaN())), "the score nan");
  check_has(sentence_error(sentence_file(2, false, false, {}) + field(2, field(35, std::uint64_t{1}))),
            "no piece for byte 0");
  check_has(sentence_error(sentence_file(3, false, false, {})), "model_type 3");
  check_has(sentence_error(good + field(3, field(2, std::string_view("\xff\xff\xff\xff rules", 10)))),
            "normalization rules");
  check_has(sentence_error(good + field(3, field(2, std::string_view("\x03\0\0\0abcdef", 10)))), "normalization rules");
  check_has(sentence_error(good + field(5, field(2, std::string_view("x")))), "denormalizer");
}

TEST_CASE("foreign files: random rules of normalization lead nowhere outside") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::string blob = random_bytes(seed, 4 + 4 * 64 + 40, seed % 2 == 0 ? 256 : 4);
    blob.replace(0, 4, std::string("\0\1\0\0", 4));
    blob += '\0';
    try {
      const Charsmap rules(blob);
      const std::string text = random_bytes(seed, 200);
      for (std::size_t at = 0; at < text.size(); ++at)
        CHECK(rules.find(std::string_view(text).substr(at)).length <= text.size());
    } catch (const InputError&) {
    }
  }
}

TEST_CASE("foreign files: damaged World vocabularies are one clear line with its number") {
  check_has(world_error("1 'a' 2\n"), "line 1: its piece has 1 bytes, and the line says 2");
  check_has(world_error("1 'a' 1\n1 'b' 1\n"), "line 2: id 1 is there twice");
  check_has(world_error("99999999 'a' 1\n"), "id 99999999 is outside 1 to");
  check_has(world_error("0 'a' 1\n"), "id 0 is outside 1 to");
  check_has(world_error("1 'a\n"), "is cut short");
  check_has(world_error("1 '\\q' 1\n"), "escape");
  check_has(world_error("1 '\\ud800' 3\n"), "no character");
  check_has(world_error("1 b'\\xg0' 1\n"), "hexadecimal");
  check_has(world_error("1 'a' 1 x\n"), "more behind");
  check_has(world_error("99999999999999999999 'a' 1\n"), "no whole number");
  check_has(world_error("1 'a' 1\n"), "no token for byte 0");
}
