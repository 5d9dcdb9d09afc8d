#include "text/corpus.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"
#include "text/sample_files.h"
#include "text/sample_texts.h"

using namespace quipu;
using Texts = std::vector<std::string>;

namespace {

class Documents final : public DocumentSink {
 public:
  void text(std::string_view block) override {
    CHECK_FALSE(block.empty());
    open_ += block;
  }
  void end_document() override {
    CHECK_FALSE(open_.empty());
    done.push_back(std::move(open_));
    open_.clear();
  }
  Texts done;

 private:
  std::string open_;
};

Texts split(DocumentRule rule, std::string_view text, std::size_t block = 1000000) {
  Documents documents;
  DocumentSplitter splitter(rule, documents);
  for (std::size_t at = 0; at < text.size(); at += block) splitter.add(text.substr(at, block));
  splitter.end_file();
  return documents.done;
}

}  // namespace

TEST_CASE("corpus: files, lines and paragraphs") {
  const std::string text = "a b\nc\n\n \t\r\n  d\ne\n\nf";
  CHECK(split(DocumentRule::kFile, text) == Texts{text});
  CHECK(split(DocumentRule::kLine, text) == Texts{"a b\n", "c\n", "\n", " \t\r\n", "  d\n", "e\n", "\n", "f"});
  CHECK(split(DocumentRule::kBlank, text) == Texts{"a b\nc\n\n \t\r\n", "  d\ne\n\n", "f"});
  CHECK(split(DocumentRule::kBlank, "\n \n a\n\n\n") == Texts{"\n \n a\n\n\n"});
  CHECK(split(DocumentRule::kBlank, "a\n\n  ") == Texts{"a\n\n  "});
  CHECK(split(DocumentRule::kBlank, "a\r\n\r\nb\r\n") == Texts{"a\r\n\r\n", "b\r\n"});
  CHECK(split(DocumentRule::kBlank, " \n\n") == Texts{" \n\n"});
  CHECK(split(DocumentRule::kLine, "a") == Texts{"a"});
  CHECK(split(DocumentRule::kLine, "\n") == Texts{"\n"});
}

TEST_CASE("corpus: documents do not depend on blocks and are together the whole text") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::string text = random_bytes(seed, 80, 4);
    for (char& c : text) c = "a\n \t"[static_cast<std::size_t>(c)];
    for (const DocumentRule rule : {DocumentRule::kFile, DocumentRule::kLine, DocumentRule::kBlank}) {
      const Texts whole = split(rule, text);
      std::string joined;
      for (const std::string& document : whole) joined += document;
      CHECK(joined == text);
      for (const std::size_t block : {1, 2, 3, 10}) CHECK(split(rule, text, block) == whole);
    }
  }
}

TEST_CASE("corpus: a file ends a document, whatever the rule") {
  Documents documents;
  DocumentSplitter splitter(DocumentRule::kBlank, documents);
  splitter.add("a\n\n");
  splitter.end_file();
  splitter.add("\nb");
  splitter.end_file();
  splitter.add("c");
  splitter.end_file();
  CHECK(documents.done == Texts{"a\n\n", "\nb", "c"});
}

TEST_CASE("corpus: bytes and words are counted as wc counts them") {
  TextCounter counter;
  for (const std::string_view block : {"one tw", "o\tthree\n", " \v\f", "\r\nfo", "ur"}) counter.text(block);
  counter.end_document();
  CHECK(counter.bytes() == 23);
  CHECK(counter.words() == 4);
  counter.text("five\xc2\xa0still-five");
  counter.end_document();
  CHECK(counter.words() == 5);
  CHECK(counter.documents() == 2);
}

TEST_CASE("corpus: the rules have names") {
  CHECK(parse_document_rule("file") == DocumentRule::kFile);
  CHECK(parse_document_rule("line") == DocumentRule::kLine);
  CHECK(parse_document_rule("blank") == DocumentRule::kBlank);
  CHECK_THROWS_WITH_AS(parse_document_rule("page"), "documents: 'page' is unknown; give file, line or blank",
                       UsageError);
}

TEST_CASE("corpus: a gzip file is read as its text") {
  const ScratchFolder folder;
  Documents documents;
  read_documents(folder.write("x.gz", gzip("a\nb\n")), DocumentRule::kLine, documents);
  CHECK(documents.done == Texts{"a\n", "b\n"});
  CHECK_THROWS_AS(read_documents(folder.path("none"), DocumentRule::kLine, documents), InputError);
}
