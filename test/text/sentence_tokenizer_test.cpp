#include "text/sentence_tokenizer.h"

#include <doctest/doctest.h>
#include <sentencepiece_processor.h>

#include <fstream>
#include <iterator>

#include "text/foreign_samples.h"
#include "text/tokenizer_checks.h"

using namespace quipu;

namespace {

/// The tokens that SentencePiece's own library gives.
class Reference {
 public:
  explicit Reference(const std::string& model) { REQUIRE(library_.LoadFromSerializedProto(model).ok()); }

  std::vector<std::int32_t> encode(const std::string& text) const {
    std::vector<int> ids;
    REQUIRE(library_.Encode(text, &ids).ok());
    return {ids.begin(), ids.end()};
  }

 private:
  sentencepiece::SentencePieceProcessor library_;
};

void check_against_library(const std::string& model, std::uint64_t seeds) {
  const Reference reference(model);
  const SentenceTokenizer tokenizer(read_sentence_model(model));
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::string text = seed % 3 == 0 ? random_unicode(seed, seed % 50) : mixed_text(seed, false);
    std::erase(text, '\0');
    if (tokenizer.encode(text) != reference.encode(text)) FAIL("differs: " << text);
  }
}

}  // namespace

TEST_CASE("sentencepiece: the tokens are those of its library") {
  for (const std::uint64_t method : {1, 2}) {
    for (const bool bytes : {false, true}) {
      for (const bool extra : {false, true}) {
        INFO(method << " " << bytes << " " << extra);
        std::string model = sentence_file(method, bytes, extra, sentence_pieces());
        check_against_library(model, 200);
        model += sentence_piece("<|endoftext|>", 0, 4) + sentence_piece("\u2581in", 0, 4);
        check_against_library(model, 200);
      }
    }
  }
}

TEST_CASE("sentencepiece: the tokens of a real model are those of its library") {
  for (const char* name : {"spm_test_model.model", "llama2/tokenizer.model"}) {
    std::ifstream file(real_data() / "tokenizers" / name, std::ios::binary);
    if (!file) {
      MESSAGE("skipped: no " << name);
      continue;
    }
    const std::string model((std::istreambuf_iterator<char>(file)), {});
    check_against_library(model, 300);
    const SentenceTokenizer tokenizer(read_sentence_model(model));
    for (std::uint64_t seed = 0; seed < 40; ++seed) check_streaming(tokenizer, mixed_text(seed, true), seed, 4);
  }
}
