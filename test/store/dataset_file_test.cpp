#include "store/dataset_file.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "base/temporary_folder.h"

using namespace quipu;
using quipu_test::TemporaryFolder;

namespace {

const TokenizerData kTokenizer{"words", {{"z/list", {1, 2, 3}}, {"", {9}}, {".a%2f", {}}}};
const Provenance kProvenance{{"convert text -o x.h5 a.txt", "two\nlines"}, {"0123 a.txt"}};

std::vector<std::int32_t> tokens_of(Index n, Index vocab) {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>((i * i + 3) % vocab));
  return tokens;
}

void write_dataset(const std::string& path, Index vocab, Index n) {
  DatasetWriter writer(path, kTokenizer, vocab, kProvenance);
  SplitWriter& train = writer.split("train");
  SplitWriter& valid = writer.split("valid");
  const auto tokens = tokens_of(n, vocab);
  const std::span<const std::int32_t> all(tokens);
  train.append(all.first(5));
  valid.append(all.first(4));
  train.end_document();
  train.end_document();
  train.append(all.subspan(5));
  train.count_text("one tw");
  train.count_text("o three\n");
  train.add_counts(10, 2);
  valid.end_document();
  writer.commit();
}

}  // namespace

TEST_CASE("dataset: what was written comes back, narrow and wide, held and in pieces") {
  const TemporaryFolder folder;
  const std::string path = folder / "d.h5";
  for (const Index vocab : {Index{300}, Index{65536}, Index{65537}}) {
    constexpr Index kTokens = 600'000;
    write_dataset(path, vocab, kTokens);
    for (const std::uint64_t memory : {std::uint64_t{0}, Dataset::kMemory}) {
      const Dataset data(path, memory);
      CHECK(data.tokenizer() == kTokenizer);
      CHECK(data.vocab() == vocab);
      CHECK(data.split_names() == std::vector<std::string>{"train", "valid"});
      CHECK(data.file().entry("/train/tokens").type == (vocab <= 65536 ? ElementType::kUInt16 : ElementType::kUInt32));
      const Split& train = data.split("train");
      CHECK(train.tokens() == kTokens);
      CHECK(train.documents() == 3);
      CHECK(train.document_offset(0) == 0);
      CHECK(train.document_offset(1) == 5);
      CHECK(train.document_offset(2) == 5);
      CHECK(train.document_offset(3) == kTokens);
      CHECK(train.document_starts(0, kTokens) == std::vector<Index>{0, 5});
      CHECK(train.document_starts(1, 5).empty());
      CHECK(train.document_starts(5, 6) == std::vector<Index>{5});
      CHECK(train.document_starts(6, kTokens).empty());
      CHECK(train.bytes() == 14 + 10);
      CHECK(train.words() == 3 + 2);
      CHECK(data.split("valid").documents() == 1);
      std::vector<std::int32_t> part(1234);
      train.read(kTokens - 1234, part);
      const auto expected = tokens_of(kTokens, vocab);
      CHECK(std::equal(part.begin(), part.end(), expected.end() - 1234));
      CHECK_THROWS_AS(train.read(kTokens - 1233, part), ShapeError);
      CHECK_THROWS_AS(train.read(-1, part), ShapeError);
    }
  }
}

TEST_CASE("dataset: its digest is that of its content, whenever it was made") {
  const TemporaryFolder folder;
  ::setenv("SOURCE_DATE_EPOCH", "1", 1);
  write_dataset(folder / "a.h5", 300, 1000);
  ::setenv("SOURCE_DATE_EPOCH", "2", 1);
  write_dataset(folder / "b.h5", 300, 1000);
  ::unsetenv("SOURCE_DATE_EPOCH");
  write_dataset(folder / "c.h5", 300, 1001);
  write_dataset(folder / "d.h5", 301, 1000);
  const std::string digest = Dataset(folder / "a.h5").digest();
  CHECK(digest.size() == 32);
  CHECK(Dataset(folder / "b.h5").digest() == digest);
  CHECK(Dataset(folder / "a.h5").file().digest() != Dataset(folder / "b.h5").file().digest());
  CHECK(Dataset(folder / "c.h5").digest() != digest);
  CHECK(Dataset(folder / "d.h5").digest() != digest);
  CHECK(Dataset(folder / "a.h5").provenance() == Provenance{{kProvenance.commands[0], "two lines"}, kProvenance.data});
}

TEST_CASE("dataset: scored tasks and pairs") {
  const TemporaryFolder folder;
  const std::string path = folder / "d.h5";
  const std::vector<std::int32_t> inputs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<std::int32_t> targets = {-1, -1, 3, -1, -1, 1, 2, -1, -1, -1, -1, 19};
  {
    DatasetWriter writer(path, kTokenizer, 20, kProvenance);
    SplitWriter& test = writer.split("test");
    test.append_examples(std::span(inputs).first(6), std::span(targets).first(6), 3);
    test.append_examples(std::span(inputs).last(6), std::span(targets).last(6), 3);
    CHECK_THROWS_AS(test.append_examples(inputs, targets, 4), ShapeError);
    CHECK_THROWS_AS(test.append_examples(inputs, std::span(targets).first(9), 3), ShapeError);
    writer.split("train/source").append(inputs);
    writer.split("train/target").append(targets.size() > 5 ? std::span(inputs).first(5) : std::span(inputs));
    writer.commit();
  }
  for (const std::uint64_t memory : {std::uint64_t{0}, Dataset::kMemory}) {
    const Dataset data(path, memory);
    CHECK(data.split_names() == std::vector<std::string>{"test", "train/source", "train/target"});
    const Split& test = data.split("test");
    CHECK(test.is_scored());
    CHECK(test.examples() == 4);
    CHECK(test.length() == 3);
    std::vector<std::int32_t> in(6), out(6);
    test.read_examples(1, in, out);
    CHECK(in == std::vector<std::int32_t>(inputs.begin() + 3, inputs.begin() + 9));
    CHECK(out == std::vector<std::int32_t>(targets.begin() + 3, targets.begin() + 9));
    CHECK_THROWS_AS(test.read_examples(3, in, out), ShapeError);
    CHECK_THROWS_AS(test.read(0, in), InputError);
    CHECK(data.split("train/target").tokens() == 5);
  }
}

TEST_CASE("dataset: names what is wrong") {
  const TemporaryFolder folder;
  const std::string path = folder / "d.h5";
  const auto message = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  DatasetWriter writer(path, kTokenizer, 10, kProvenance);
  const std::vector<std::int32_t> tokens = {1, 10};
  CHECK(message([&] { writer.split("train").append(tokens); }) ==
        "/train: token id 10 is outside the vocabulary (size 10)");
  for (const char* name : {"", "tokenizer", "a//b", "/a", "a/", "..", "a b", "digests/x"}) {
    CHECK_THROWS_AS(writer.split(name), UsageError);
  }
  DatasetWriter empty(path, kTokenizer, 10, kProvenance);
  empty.split("train");
  empty.commit();
  const Dataset data(path);
  CHECK(data.split("train").tokens() == 0);
  CHECK(data.split("train").documents() == 0);
  CHECK(data.split("train").document_starts(0, 10).empty());
  CHECK(message([&] { data.split("test"); }) == path + ": has no split test; it has train");
}
