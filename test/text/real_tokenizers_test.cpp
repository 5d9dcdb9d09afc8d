#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "text/text_reader.h"
#include "text/tokenizer_checks.h"
#include "text/tokenizer_file.h"

using namespace quipu;

namespace {

using Ids = std::vector<std::int32_t>;

const std::map<std::string, std::string> kFiles = {{"gpt2", "gpt2"},
                                                   {"neox-20b", "neox/20B_tokenizer.json"},
                                                   {"rwkv-world", "rwkv/rwkv_vocab_v20230424.txt"},
                                                   {"spm-test", "spm_test_model.model"},
                                                   {"llama2", "llama2/tokenizer.model"},
                                                   {"llama2.c", "llama2/tokenizer.bin"}};

/// The tokenizer, or null where its file is not there.
const Tokenizer* real_tokenizer(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> read;
  const std::filesystem::path path = real_data() / "tokenizers" / kFiles.at(name);
  if (!read.contains(name)) read[name] = std::filesystem::exists(path) ? read_tokenizer_file(path.string()) : nullptr;
  if (!read[name]) MESSAGE("skipped: no " << path.string());
  return read[name].get();
}

std::string read_real(const std::string& name) {
  std::ifstream file(real_data() / "tokenizers" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_line(const nlohmann::json& line, const std::string& name) {
  const Tokenizer* tokenizer = real_tokenizer(name);
  if (tokenizer == nullptr) return;
  const std::string text = line["text"];
  Ids expected = line["ids"].get<Ids>();
  if (line["source"].get<std::string>().find("BOS=1 first") != std::string::npos) expected.erase(expected.begin());
  INFO(name << ": " << text);
  CHECK(tokenizer->encode(text) == expected);
}

void check_pair(const std::string& file, const std::string& name) {
  const Tokenizer* tokenizer = real_tokenizer(name);
  const std::string inputs = read_real("llama.cpp/" + file + ".inp"), outputs = read_real("llama.cpp/" + file + ".out");
  if (tokenizer == nullptr || inputs.empty()) return;
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::istringstream lines(outputs);
  std::size_t begin = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::size_t end = inputs.find(kBetween, begin);
    REQUIRE(end != inputs.npos);
    const std::string text = inputs.substr(begin, end - begin);
    begin = end + kBetween.size();
    std::istringstream numbers(line);
    const Ids expected{std::istream_iterator<std::int32_t>(numbers), {}};
    INFO(name << ": " << text);
    CHECK(tokenizer->encode(text) == expected);
  }
  CHECK(count > 30);
}

}  // namespace

TEST_CASE("real tokenizers: the ids are those that their own programs give") {
  std::istringstream lines(read_real("expected_encodings.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json one = nlohmann::json::parse(line);
    check_line(one, one["tokenizer"]);
    if (one["tokenizer"] == "llama2") check_line(one, "llama2.c");
  }
}

TEST_CASE("real tokenizers: llama.cpp's pairs of texts and ids") {
  check_pair("ggml-vocab-gpt-2.gguf", "gpt2");
  check_pair("ggml-vocab-mpt.gguf", "neox-20b");
  check_pair("ggml-vocab-llama-spm.gguf", "llama2");
}

TEST_CASE("real tokenizers: text comes back, in any blocks, and from their data") {
  for (const char* name : {"gpt2", "neox-20b", "rwkv-world", "llama2.c"}) {
    const Tokenizer* tokenizer = real_tokenizer(name);
    if (tokenizer == nullptr) continue;
    INFO(name);
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const std::string text = seed % 3 == 0 ? random_bytes(seed, 200) : mixed_text(seed, true);
      check_streaming(*tokenizer, text, seed, 3);
      const std::string back = tokenizer->decode(tokenizer->encode(text));
      const bool kept = name == std::string("gpt2") || name == std::string("rwkv-world");
      if (kept && back != text) FAIL("not restored: " << text);
      CHECK(tokenizer->decode(tokenizer->encode(back)) == back);
    }
    const auto again = make_tokenizer(tokenizer->serialize());
    CHECK(again->digest() == tokenizer->digest());
    CHECK(again->encode(mixed_text(7, true)) == tokenizer->encode(mixed_text(7, true)));
  }
}
