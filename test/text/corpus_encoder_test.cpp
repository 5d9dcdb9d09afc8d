#include "text/corpus_encoder.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <stdexcept>

#include "base/error.h"
#include "text/byte_tokenizer.h"
#include "text/sample_files.h"
#include "text/sample_texts.h"

using namespace quipu;

namespace {

struct Encoded {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> ends;
  SplitSummary summary;

  TokenBlocks collect() {
    return [this](std::span<const std::int32_t> t, std::span<const std::uint64_t> e) {
      tokens.insert(tokens.end(), t.begin(), t.end());
      ends.insert(ends.end(), e.begin(), e.end());
    };
  }
};

/// What the encoder must give: each document encoded whole.
class WholeDocuments final : public DocumentSink {
 public:
  explicit WholeDocuments(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void text(std::string_view block) override { open_ += block; }
  void end_document() override {
    tokenizer_.encode(open_, expected.tokens);
    if (const auto end = tokenizer_.end_of_document()) expected.tokens.push_back(*end);
    expected.ends.push_back(expected.tokens.size());
    open_.clear();
  }
  Encoded expected;

 private:
  const Tokenizer& tokenizer_;
  std::string open_;
};

/// Bytes with a token that ends documents, and one byte that cannot be encoded.
class EndingTokenizer final : public Tokenizer {
 public:
  std::string_view kind() const override { return "ending"; }
  std::int64_t vocab_size() const override { return 257; }
  std::size_t encode_some(std::string_view text, TextPart part, std::vector<std::int32_t>& tokens) const override {
    if (text.find('\xff') != text.npos) throw std::runtime_error("cannot");
    return bytes_.encode_some(text, part, tokens);
  }
  std::size_t cut_after(std::string_view text, std::size_t from) const override { return bytes_.cut_after(text, from); }
  std::string_view token_bytes(std::int32_t id) const override { return id == 256 ? "" : bytes_.token_bytes(id); }
  std::optional<std::int32_t> end_of_document() const override { return 256; }
  TokenizerData serialize() const override { return {"ending", {}}; }

 private:
  ByteTokenizer bytes_;
};

std::string long_text() {
  std::string text;
  for (std::uint64_t part = 0; part < 12; ++part) {
    text += sample_prose(part, 60000);
    text += random_bytes(part, 30000) + std::string(100000, part % 2 == 0 ? 'x' : ' ');
  }
  return text;
}

}  // namespace

TEST_CASE("corpus encoder: equals encoding each document whole, for every rule, on any threads") {
  const ScratchFolder folder;
  const std::string text = long_text();
  const std::vector<std::string> paths = {folder.write("a.txt", text), folder.write("b.txt", "one\n\ntwo"),
                                          folder.write("c.txt", gzip(text.substr(0, 100000)))};
  const int threads = omp_get_max_threads();
  for (const std::string spec : {"bytes", "words:40", "bpe:400", "unigram:400"}) {
    const auto tokenizer = trained(spec, sample_prose());
    for (const DocumentRule rule : {DocumentRule::kFile, DocumentRule::kLine, DocumentRule::kBlank}) {
      INFO(spec << " rule " << static_cast<int>(rule));
      WholeDocuments whole(*tokenizer);
      for (const std::string& path : paths) read_documents(path, rule, whole);
      for (const int count : {1, 3}) {
        omp_set_num_threads(count);
        Encoded encoded;
        encoded.summary = encode_files(*tokenizer, paths, rule, encoded.collect());
        omp_set_num_threads(threads);
        CHECK((encoded.tokens == whole.expected.tokens));
        CHECK((encoded.ends == whole.expected.ends));
        CHECK(encoded.summary.tokens == encoded.tokens.size());
        CHECK(encoded.summary.documents == encoded.ends.size());
        CHECK(encoded.summary.bytes == text.size() + 8 + 100000);
      }
    }
  }
}

TEST_CASE("corpus encoder: words are those of the original text") {
  const ScratchFolder folder;
  const std::vector<std::string> paths = {folder.write("a", "one two"), folder.write("b", "three\n four \n")};
  Encoded encoded;
  const SplitSummary summary = encode_files(ByteTokenizer(), paths, DocumentRule::kFile, encoded.collect());
  CHECK(summary.words == 4);
  CHECK(summary.bytes == 20);
  CHECK(summary.tokens == 20);
  CHECK(encoded.ends == std::vector<std::uint64_t>{7, 20});
}

TEST_CASE("corpus encoder: a document without tokens is kept") {
  const auto words = trained("words", "a b");
  Encoded encoded;
  CorpusEncoder encoder(*words, encoded.collect());
  for (const std::string_view document : {"  ", "a", " "}) {
    encoder.text(document);
    encoder.end_document();
  }
  CHECK(encoder.finish().documents == 3);
  CHECK(encoded.ends == std::vector<std::uint64_t>{0, 1, 1});
}

TEST_CASE("corpus encoder: a token that ends documents, and errors, pass through") {
  const EndingTokenizer tokenizer;
  Encoded encoded;
  CorpusEncoder encoder(tokenizer, encoded.collect());
  encoder.text("ab");
  encoder.end_document();
  encoder.text(std::string(100000, 'c'));
  CHECK_THROWS_AS(encoder.finish(), InternalError);
  encoder.end_document();
  CHECK(encoder.finish().tokens == 100004);
  CHECK(encoded.ends == std::vector<std::uint64_t>{3, 100004});
  CHECK(encoded.tokens[2] == 256);

  CorpusEncoder failing(tokenizer, encoded.collect());
  failing.text("\xff");
  failing.end_document();
  CHECK_THROWS_AS(failing.finish(), std::runtime_error);
}

TEST_CASE("corpus encoder: a book of real text, compressed to less than a third") {
  if (real_data().empty()) {
    MESSAGE("skipped: no folder of real texts (QUIPU_REAL_DATA)");
    return;
  }
  const std::vector<std::string> paths = {(real_data() / "lm" / "austen_persuasion.txt.gz").string()};
  const auto trainer = make_trainer(parse_tokenizer_spec("bpe:2048"));
  read_documents(paths[0], DocumentRule::kFile, *trainer);
  const auto tokenizer = trainer->finish();
  WholeDocuments whole(*tokenizer);
  read_documents(paths[0], DocumentRule::kFile, whole);
  Encoded encoded;
  encoded.summary = encode_files(*tokenizer, paths, DocumentRule::kFile, encoded.collect());
  CHECK((encoded.tokens == whole.expected.tokens));
  CHECK(tokenizer->decode(encoded.tokens).size() == encoded.summary.bytes);
  CHECK(3 * encoded.summary.tokens < encoded.summary.bytes);
}
