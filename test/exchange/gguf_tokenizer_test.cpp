#include "exchange/gguf_tokenizer.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "exchange/gguf_sample.h"
#include "real_data.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe_files.h"
#include "text/tokenizer_file.h"

using namespace quipu;
using namespace quipu_test;

namespace {

std::unique_ptr<Tokenizer> read(const std::string& bytes) { return read_gguf_tokenizer(*open_bytes(bytes)); }

/// GPT-2's kind: 256 bytes, three merges, a literal, a special one and a filler.
GgufFile byte_level(const std::string& pre = "gpt-2") {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(spelling_of_bytes(std::string(1, static_cast<char>(byte))));
  std::vector<std::int32_t> types(256, 1);
  for (const auto& [token, type] : std::vector<std::pair<std::string, int>>{
           {"th", 1}, {"the", 1}, {"\xc4\xa0the", 1}, {"  ", 4}, {"<|endoftext|>", 3}, {"[PAD1]", 5}})
    tokens.push_back(token), types.push_back(type);
  GgufFile file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", pre).texts("tokenizer.ggml.tokens", tokens);
  file.counts("tokenizer.ggml.token_type", types).count("tokenizer.ggml.eos_token_id", 260);
  return file.texts("tokenizer.ggml.merges", {"t h", "th e", "\xc4\xa0 the"});
}

#define REFUSES(expression, text) CHECK_THROWS_WITH_AS(expression, doctest::Contains(text), InputError)

}  // namespace

TEST_CASE("GGUF: a byte-level tokenizer") {
  const auto tokenizer = read(byte_level().bytes());
  REQUIRE(tokenizer != nullptr);
  CHECK(tokenizer->vocab_size() == 261);
  CHECK(tokenizer->end_of_document() == 260);
  CHECK(tokenizer->encode("the the") == std::vector<std::int32_t>{257, 258});
  CHECK(tokenizer->encode("a  b") == std::vector<std::int32_t>{'a', 259, 'b'});
  CHECK(tokenizer->encode("<|endoftext|>").size() == 13);
  tokenizer->use_special_tokens();
  CHECK(tokenizer->encode("a<|endoftext|>") == std::vector<std::int32_t>{'a', 260});
  CHECK(tokenizer->decode(tokenizer->encode("\xff\0 the")) == "\xff");
  CHECK(read(byte_level("llama-bpe").bytes())->encode("THE the").size() == 4);
  REFUSES(read(byte_level("viking").bytes()), "its pre-tokenizer viking is not known here; give the model's own");
}

TEST_CASE("GGUF: a SentencePiece tokenizer") {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types{2, 3, 3};
  std::vector<float> scores{0, 0, 0};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte)), types.push_back(6);
  for (const char* piece : {"\xe2\x96\x81", "a", "b", "ab",
                            "\xe2\x96\x81"
                            "ab"})
    tokens.emplace_back(piece), types.push_back(1);
  for (std::size_t i = 3; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(tokens.size() - i));
  const auto file = [&](bool prefix) {
    GgufFile made;
    made.text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", tokens)
        .reals("tokenizer.ggml.scores", scores);
    return made.counts("tokenizer.ggml.token_type", types)
        .count("tokenizer.ggml.eos_token_id", 2)
        .flag("tokenizer.ggml.add_space_prefix", prefix);
  };
  const auto tokenizer = read(file(true).bytes());
  CHECK(tokenizer->kind() == "sentencepiece");
  CHECK(tokenizer->encode("ab  b!") == std::vector<std::int32_t>{263, 259, 259, 261, 3 + '!'});
  CHECK(tokenizer->end_of_document() == 2);
  CHECK(read(file(false).bytes())->encode("ab") == std::vector<std::int32_t>{262});
  scores.pop_back();
  REFUSES(read(file(true).bytes()), "has 264 tokens, and 263 scores");
}

TEST_CASE("GGUF: the World tokenizer; none; unknown ones") {
  std::vector<std::string> tokens{"<s>"};
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool plain = byte >= 32 && byte < 127 && c != '\\';
    tokens.push_back(plain       ? std::string(1, c)
                     : c == '\n' ? "\\n"
                     : c == '\\' ? "\\\\"
                                 : fmt::format("\\x{:02x}", byte));
  }
  tokens.insert(tokens.end(), {"it's\\t", "\\xe4\\xbd\\xa0", "[PAD1]"});
  std::vector<std::int32_t> types(tokens.size(), 1);
  types.front() = 3, types.back() = 5;
  GgufFile file;
  file.text("tokenizer.ggml.model", "rwkv")
      .texts("tokenizer.ggml.tokens", tokens)
      .counts("tokenizer.ggml.token_type", types);
  const auto tokenizer = read(file.bytes());
  CHECK(tokenizer->kind() == "world");
  CHECK(tokenizer->vocab_size() == 259);
  CHECK(tokenizer->encode("it's\t\xe4\xbd\xa0\n\\") == std::vector<std::int32_t>{257, 258, 1 + '\n', 1 + '\\'});
  CHECK(read(GgufFile().text("general.name", "x").bytes()) == nullptr);
  REFUSES(read(GgufFile().text("tokenizer.ggml.model", "bert").bytes()), "is of the kind bert");
  REFUSES(read(GgufFile().text("tokenizer.ggml.model", "rwkv").bytes()), "has no list tokenizer.ggml.tokens");
  tokens[5] = "\\q";
  GgufFile torn;
  torn.text("tokenizer.ggml.model", "rwkv").texts("tokenizer.ggml.tokens", tokens);
  REFUSES(read(torn.bytes()), "has an escape that is not known");
}
