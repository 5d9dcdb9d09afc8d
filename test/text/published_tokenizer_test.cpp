#include "text/published_tokenizer.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "text/byte_bpe_files.h"
#include "text/foreign_samples.h"
#include "text/sample_files.h"
#include "text/sample_texts.h"
#include "text/sentence_tokenizer.h"
#include "text/tokenizer_checks.h"
#include "text/tokenizer_file.h"
#include "text/world_tokenizer.h"

using namespace quipu;

namespace {

/// The files of a tokenizer, and what is read of each that holds one.
struct Written {
  ScratchFolder folder;
  std::map<std::string, std::string> files;

  explicit Written(const Tokenizer& tokenizer) {
    for (const TokenizerFile& file : published_tokenizer(tokenizer.serialize())) {
      folder.write(file.name, file.content);
      files[file.name] = file.content;
    }
  }
  std::unique_ptr<Tokenizer> read(const std::string& name) const { return read_tokenizer_file(folder.path(name)); }
};

/// Reads the file `name` again: the same tokenizer, with the same tokens for all kinds of text, special ones as well.
void check_same(const Tokenizer& tokenizer, const std::string& name) {
  const Written written(tokenizer);
  INFO(name);
  REQUIRE(written.files.contains(name));
  const auto again = written.read(name);
  CHECK(again->vocab_size() == tokenizer.vocab_size());
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string text = seed % 3 == 0 ? random_bytes(seed, 300) : mixed_text(seed, true) + "<|endoftext|></s>";
    CHECK(again->encode(text) == tokenizer.encode(text));
  }
  if (tokenizer.kind() != "bytes") CHECK(again->digest() == tokenizer.digest());
}

std::unique_ptr<Tokenizer> byte_bpe(ByteBpeModel model) { return std::make_unique<ByteBpeTokenizer>(std::move(model)); }

}  // namespace

TEST_CASE("published tokenizers: byte-level BPE") {
  SmallBpe small = small_bpe();
  small.tokens.emplace_back("<|endoftext|>");
  const auto gpt2 = byte_bpe(read_gpt2_files(small.vocab_json(), small.merges_txt()));
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) check_same(*gpt2, name);
  const auto config = nlohmann::json::parse(Written(*gpt2).files.at("tokenizer_config.json"));
  CHECK(config["tokenizer_class"] == "GPT2Tokenizer");
  CHECK(config["eos_token"] == "<|endoftext|>");

  const char* const added =
      R"("added_tokens": [{"id": 266, "content": "<|endoftext|>", "special": true},
          {"id": 267, "content": "   ", "special": false, "normalized": true},
          {"id": 300, "content": "caf\u00e9", "special": false, "normalized": false}], )";
  const char* const cuts =
      R"("normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": true},
          {"type": "Split", "pattern": {"Regex": "[^\\s]+|\\s+"}, "behavior": "Isolated", "invert": false},
          {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]}, )";
  const auto rich = byte_bpe(
      read_tokenizer_json(small_bpe().tokenizer_json(std::string(added) + cuts, R"("ignore_merges": true, )")));
  check_same(*rich, "tokenizer.json");
  CHECK_FALSE(Written(*rich).files.contains("vocab.json"));
  const auto spaced = byte_bpe(read_tokenizer_json(
      small_bpe().tokenizer_json(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true}, )")));
  check_same(*spaced, "tokenizer.json");
}

TEST_CASE("published tokenizers: bytes, SentencePiece, World") {
  check_same(*make_tokenizer({"bytes", {}}), "tokenizer.json");
  for (const std::uint64_t method : {1, 2})
    for (const bool bytes : {false, true})
      check_same(SentenceTokenizer(read_sentence_model(sentence_file(method, bytes, !bytes, sentence_pieces()))),
                 "tokenizer.model");
  std::vector<std::string> pieces(1);
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  for (const char* piece : {"it's", "\"'\\", "\xe2\x80\xa8", "caf\xc3\xa9", "a\nb\r", "\xc3\xa9\xff"})
    pieces.emplace_back(piece);
  pieces.emplace_back();
  pieces.emplace_back("end");
  check_same(WorldTokenizer(pieces), "rwkv_vocab_v20230424.txt");
}

TEST_CASE("published tokenizers: what no other program has") {
  CHECK(published_tokenizer({"words", {}}).empty());
  CHECK(published_tokenizer({"bpe", {}}).empty());
}

TEST_CASE("published tokenizers: real ones") {
  const std::map<std::string, std::string> real{{"gpt2/vocab.json", "tokenizer.json"},
                                                {"gpt2/merges.txt", "vocab.json"},
                                                {"neox/20B_tokenizer.json", "tokenizer.json"},
                                                {"spm_test_model.model", "tokenizer.model"},
                                                {"rwkv/rwkv_vocab_v20230424.txt", "rwkv_vocab_v20230424.txt"}};
  for (const auto& [from, to] : real) {
    const std::filesystem::path path = real_data() / "tokenizers" / from;
    if (std::filesystem::exists(path))
      check_same(*read_tokenizer_file(path.string()), to);
    else
      MESSAGE("skipped: no " << path.string());
  }
}
