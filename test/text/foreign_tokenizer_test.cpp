#include <doctest/doctest.h>

#include "base/error.h"
#include "text/byte_bpe_files.h"
#include "text/foreign_samples.h"
#include "text/sample_files.h"
#include "text/sentence_tokenizer.h"
#include "text/tokenizer_checks.h"
#include "text/tokenizer_file.h"
#include "text/world_tokenizer.h"

using namespace quipu;

namespace {

constexpr const char* kNfc = R"("normalizer": {"type": "NFC"}, )";
constexpr const char* kAdded = R"("added_tokens": [
  {"id": 266, "content": "  ", "special": false, "normalized": true},
  {"id": 267, "content": "     ", "special": false, "normalized": true},
  {"id": 268, "content": "<|endoftext|>", "special": true, "normalized": false},
  {"id": 269, "content": "king in", "special": false, "normalized": false},
  {"id": 270, "content": "\u00e9\u0323", "special": false, "normalized": true}], )";
constexpr const char* kDigits = R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": false}, {"type": "Punctuation"},
  {"type": "Split", "pattern": {"Regex": "[\u3400-\u9fff]+|\\p{N}{1,2}"}, "behavior": "Isolated", "invert": false},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]}, )";
constexpr const char* kLlama3 = R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
   "behavior": "Removed", "invert": true},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, )";

std::unique_ptr<Tokenizer> byte_bpe(ByteBpeModel model) { return std::make_unique<ByteBpeTokenizer>(std::move(model)); }

std::string world_file() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += fmt::format("{} b'\\x{:02x}' 1\n", byte + 1, byte);
  return text +
         "257 ' the' 4\n258 \"king's\" 6\n259 '\\u65e5\\u672c' 6\n260 'and' 3\n261 '\\n\\n' 2\n262 'an' 2\n265 "
         "b'\\xe6\\x97' 2\n";
}

struct Sample {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
  bool lossless;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> made = [] {
    const SmallBpe bpe = small_bpe();
    const std::string added = kAdded;
    std::vector<Sample> list;
    const auto json = [&](const char* name, const std::string& parts, bool lossless, const char* model = "") {
      list.push_back({name, byte_bpe(read_tokenizer_json(bpe.tokenizer_json(parts, model))), lossless});
    };
    list.push_back({"gpt2", byte_bpe(read_gpt2_files(bpe.vocab_json(), bpe.merges_txt())), true});
    json("byte-level", kByteLevel, true);
    json("nfc", std::string(kByteLevel) + kNfc + added, false);
    json("nfkd", std::string(kByteLevel) + R"("normalizer": {"type": "NFKD"}, )" + added, false);
    json("added", added + kByteLevel, true);
    json("digits", kDigits, true);
    json("llama3", kLlama3, true, R"("ignore_merges": true, )");
    json("no words", R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}, )",
         true);
    list.push_back({"world", std::make_unique<WorldTokenizer>(read_world_vocabulary(world_file())), true});
    for (const std::uint64_t method : {1, 2}) {
      for (const bool bytes : {false, true}) {
        for (const bool extra : {false, true}) {
          const std::string file = sentence_file(method, bytes, extra, sentence_pieces());
          list.push_back({fmt::format("sentencepiece {} {} {}", method, bytes, extra),
                          std::make_unique<SentenceTokenizer>(read_sentence_model(file)), false});
        }
      }
    }
    return list;
  }();
  return made;
}

const Tokenizer& sample(std::string_view name) {
  for (const Sample& one : samples()) {
    if (one.name == name) return *one.tokenizer;
  }
  FAIL("no sample " << name);
  return *samples()[0].tokenizer;
}

std::string shown(const Tokenizer& tokenizer, std::string_view text) {
  std::string pieces;
  for (const std::int32_t id : tokenizer.encode(text)) pieces += fmt::format("[{}]", tokenizer.token_bytes(id));
  return pieces;
}

void check_all(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    INFO(seed);
    const std::string text = seed % 4 == 0   ? random_bytes(seed, seed % 90)
                             : seed % 4 == 1 ? random_unicode(seed, seed % 40)
                                             : mixed_text(seed, seed % 4 == 2);
    for (const Sample& one : samples()) {
      INFO(one.name);
      check_streaming(*one.tokenizer, text, seed, 4);
      if (one.lossless && one.tokenizer->decode(one.tokenizer->encode(text)) != text) FAIL("not restored: " << text);
    }
  }
}

}  // namespace

TEST_CASE("foreign tokenizers: streamed in any blocks and cut anywhere they give the tokens of the whole") {
  check_all(0, 120);
}

TEST_CASE("foreign tokenizers: streaming, long" * doctest::skip()) { check_all(1000, 20'000); }

TEST_CASE("foreign tokenizers: rebuilt from their data they are the same") {
  for (const Sample& one : samples()) {
    INFO(one.name);
    const TokenizerData data = one.tokenizer->serialize();
    const auto again = make_tokenizer(data);
    CHECK(again->serialize() == data);
    CHECK(again->digest() == one.tokenizer->digest());
    CHECK(again->end_of_document() == one.tokenizer->end_of_document());
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::string text = mixed_text(seed, true);
      CHECK(again->encode(text) == one.tokenizer->encode(text));
      CHECK(again->decode(again->encode(text)) == one.tokenizer->decode(one.tokenizer->encode(text)));
    }
    for (std::size_t blob = 0; blob < data.blobs.size(); ++blob) {
      TokenizerData bad = data;
      bad.blobs[blob].bytes += "\xff";
      if (data.blobs[blob].name == "unknown_text") continue;
      INFO(data.blobs[blob].name);
      CHECK_THROWS_AS(make_tokenizer(bad), InputError);
    }
  }
}

TEST_CASE("byte-bpe: merges, words, added tokens and normalization") {
  CHECK(shown(sample("gpt2"), "the thing, and 12 the  <|endoftext|>") ==
        "[t][he][ t][h][in][g][,][ ][and][ ][12][ the][ ][ ][<][|][e][n][d][o][f][t][e][x][t][|][>]");
  CHECK(shown(sample("added"), "a       b king in") == "[a][     ][  ][b][ ][king in]");
  CHECK(sample("nfc").encode("e\u0301") == sample("nfc").encode("\u00e9"));
  CHECK(sample("nfc").decode(sample("nfc").encode("e\u0301x")) == "\u00e9x");
  CHECK(sample("nfkd").decode(sample("nfkd").encode("\ufb01\u00e9")) == "fie\u0301");
  CHECK(shown(sample("digits"), "a12345!the") == "[a][12][3][4][5][!][t][he]");
  CHECK(shown(sample("llama3"), "the123\n\n and") == "[t][he][12][3][\n][\n][ ][and]");
  CHECK(sample("gpt2").end_of_document() == std::nullopt);
  CHECK(sample("added").end_of_document() == 268);
}

TEST_CASE("byte-bpe: long words take merges as short ones do") {
  const Tokenizer& tokenizer = sample("no words");
  std::string text;
  for (int i = 0; i < 200; ++i) text += random_bytes(static_cast<std::uint64_t>(i), 1) + "andthere  ";
  std::string joined;
  for (const std::int32_t id : tokenizer.encode(text)) joined += tokenizer.token_bytes(id);
  CHECK(joined == text);
  CHECK(shown(tokenizer, std::string(5001, ' ')).size() == 2500 * 4 + 3);
}

TEST_CASE("foreign tokenizers: special tokens are text unless they are asked for") {
  const auto bpe = byte_bpe(read_tokenizer_json(small_bpe().tokenizer_json(std::string(kAdded) + kByteLevel)));
  CHECK(bpe->encode("a<|endoftext|>b").size() == 15);
  bpe->use_special_tokens();
  CHECK(bpe->encode("a<|endoftext|>b") == std::vector<std::int32_t>{'a', 268, 'b'});
  for (std::uint64_t seed = 0; seed < 60; ++seed) check_streaming(*bpe, mixed_text(seed, true), seed, 3);
  SentenceTokenizer spm(read_sentence_model(sentence_file(2, true, false, sentence_pieces())));
  CHECK(spm.encode("<s>").size() > 1);
  spm.use_special_tokens();
  CHECK(spm.encode("<s></s>") == std::vector<std::int32_t>{1, 2});
  for (std::uint64_t seed = 0; seed < 60; ++seed) check_streaming(spm, mixed_text(seed, true), seed, 3);
  CHECK_THROWS_AS(WorldTokenizer(read_world_vocabulary(world_file())).use_special_tokens(), UsageError);
}

TEST_CASE("world: the longest piece is taken, and the text comes back") {
  CHECK(shown(sample("world"), "the king's andan the") == "[t][h][e][ ][king's][ ][and][an][ the]");
  CHECK(sample("world").end_of_document() == 0);
  CHECK(sample("world").token_bytes(0).empty());
  CHECK(sample("world").vocab_size() == 266);
}

TEST_CASE("sentencepiece: blanks, bytes and unknown characters") {
  const Tokenizer& bpe = sample("sentencepiece 2 true false");
  CHECK(shown(bpe, "the kin") == "[ the][ ][kin]");
  CHECK(bpe.decode(bpe.encode("the  \xffkin\n")) == "the  \xffkin\n");
  const Tokenizer& unknown = sample("sentencepiece 1 false true");
  CHECK(unknown.encode("QQQ") == std::vector<std::int32_t>{11, 0});
  CHECK(unknown.encode("   the   ") == unknown.encode("the"));
  CHECK(unknown.encode(" ").empty());
  CHECK(unknown.decode(unknown.encode("the Q")) == "the  \u2047 ");
  CHECK(unknown.end_of_document() == 2);
}

TEST_CASE("foreign tokenizers: files are told from their content") {
  const ScratchFolder folder;
  const SmallBpe bpe = small_bpe();
  folder.write("vocab.json", bpe.vocab_json());
  folder.write("merges.txt", bpe.merges_txt());
  const std::uint64_t digest = sample("gpt2").digest();
  for (const std::string& path :
       {folder.path(""), folder.path("vocab.json"), folder.path("merges.txt"), "gpt2:" + folder.path("")}) {
    CHECK(read_tokenizer_file(path)->digest() == digest);
  }
  CHECK(read_tokenizer_file(folder.write("a", bpe.tokenizer_json(kByteLevel)))->digest() == digest);
  CHECK(read_tokenizer_file(folder.write("b", world_file()))->kind() == "world");
  const std::string model = sentence_file(2, true, false, sentence_pieces());
  const auto spm = read_tokenizer_file(folder.write("c", model));
  CHECK(spm->kind() == "sentencepiece");
  std::string llama2c = std::string("\x20\0\0\0", 4);
  const auto& pieces = dynamic_cast<const SentenceTokenizer&>(*spm).model().pieces;
  for (const SentenceModel::Piece& piece : pieces) {
    std::string text = piece.text == "<s>" ? "\n<s>\n" : piece.text == "</s>" ? "\n</s>\n" : piece.text;
    for (std::size_t at = text.find(kBlankMark); at != text.npos; at = text.find(kBlankMark)) text.replace(at, 3, " ");
    llama2c.append(reinterpret_cast<const char*>(&piece.score), 4);
    llama2c += std::string{static_cast<char>(text.size()), 0, 0, 0} + text;
  }
  CHECK(read_tokenizer_file(folder.write("d", llama2c))->digest() == spm->digest());
  for (const std::string bad : {"", "\n", "what is this\n", "\x89HDF", "\x1f\x8b", "[1]", "{}", "0"}) {
    INFO(bad);
    CHECK_THROWS_AS(read_tokenizer_file(folder.write("bad", bad)), InputError);
  }
  CHECK_THROWS_AS(read_tokenizer_file(folder.path("absent")), InputError);
}
