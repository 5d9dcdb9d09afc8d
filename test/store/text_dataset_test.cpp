#include "store/text_dataset.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "store/average.h"
#include "store/dataset_file.h"
#include "store/model_file.h"
#include "text/sample_files.h"
#include "text/text_reader.h"

using namespace quipu;

namespace {

std::string text_of(const Dataset& data, const std::string& name) {
  const Split& split = data.split(name);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(split.tokens()));
  split.read(0, tokens);
  return make_tokenizer(data.tokenizer())->decode(tokens);
}

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("line {} of the text\n", i);
  return text;
}

struct Folder : ScratchFolder {
  TextDatasetSpec spec(std::vector<std::pair<std::string, std::vector<std::string>>> splits) const {
    TextDatasetSpec spec;
    spec.output = path("data.h5");
    spec.splits = std::move(splits);
    return spec;
  }
};

template <typename E>
std::string message_of(const TextDatasetSpec& spec) {
  try {
    make_text_dataset(spec);
  } catch (const E& error) {
    return error.what();
  }
  return "no such error";
}

}  // namespace

TEST_CASE("shares of a file are cut exactly, in the order train, valid, test") {
  const Folder folder;
  const std::string text = numbered_lines(50);
  TextDatasetSpec spec = folder.spec({{"train", {folder.write("a.txt", text)}}});
  spec.valid_share = 0.1;
  spec.test_share = 0.25;
  spec.commands = {"convert text"};
  const TextDatasetSummary summary = make_text_dataset(spec);
  const Dataset data(spec.output);
  const auto train = static_cast<std::size_t>(std::floor(static_cast<double>(text.size()) * 0.65));
  const auto held = static_cast<std::size_t>(std::floor(static_cast<double>(text.size()) * 0.75));
  CHECK(text_of(data, "train") == text.substr(0, train));
  CHECK(text_of(data, "valid") == text.substr(train, held - train));
  CHECK(text_of(data, "test") == text.substr(held));
  CHECK(data.split("test").bytes() == text.size() - held);
  CHECK(data.split("train").documents() == 1);
  CHECK(summary.splits.size() == 3);
  CHECK(summary.tokenizer == "bytes");
  CHECK(data.provenance().commands == std::vector<std::string>{"convert text"});
  REQUIRE(data.provenance().data.size() == 1);
  CHECK(data.provenance().data[0].ends_with(" " + folder.path("a.txt")));
}

TEST_CASE("lines are not cut") {
  const Folder folder;
  const std::string text = numbered_lines(20);
  TextDatasetSpec spec = folder.spec({{"train", {folder.write("a.txt", text)}}});
  spec.documents = DocumentRule::kLine;
  spec.valid_share = 0.3;
  make_text_dataset(spec);
  const Dataset data(spec.output);
  CHECK(data.split("train").documents() + data.split("valid").documents() == 20);
  CHECK(text_of(data, "train").ends_with("\n"));
  CHECK(text_of(data, "train") + text_of(data, "valid") == text);
  const auto cut = static_cast<std::uint64_t>(std::floor(static_cast<double>(text.size()) * 0.7));
  CHECK(data.split("train").bytes() >= cut);
  CHECK(data.split("train").bytes() < cut + 30);
}

TEST_CASE("a tokenizer is learned from training text alone and can be taken from a dataset") {
  const Folder folder;
  TextDatasetSpec spec = folder.spec({{"train", {folder.write("a.txt", "one two two\n")}},
                                      {"valid", {folder.write("b.txt", "three two\n")}},
                                      {"extra", {folder.write("c.txt.gz", gzip("two three one\n"))}}});
  spec.tokenizer = "words";
  make_text_dataset(spec);
  const Dataset data(spec.output);
  CHECK(data.vocab() == 4);
  CHECK(text_of(data, "valid") == "<unk> two\n");
  CHECK(text_of(data, "extra") == "two <unk> one\n");

  TextDatasetSpec other = folder.spec({{"train", {folder.path("b.txt")}}});
  other.output = folder.path("other.h5");
  other.tokenizer = spec.output;
  make_text_dataset(other);
  const Dataset second(other.output);
  CHECK(second.tokenizer() == data.tokenizer());
  CHECK(text_of(second, "train") == "<unk> two\n");
}

TEST_CASE("several files of a split follow each other") {
  const Folder folder;
  TextDatasetSpec spec =
      folder.spec({{"train", {folder.write("a.txt", "ab"), folder.write("b.txt", std::string("c\0d", 3))}}});
  make_text_dataset(spec);
  const Dataset data(spec.output);
  CHECK(text_of(data, "train") == std::string("abc\0d", 5));
  CHECK(data.split("train").documents() == 2);
  CHECK(data.split("train").document_offset(1) == 2);
}

TEST_CASE("what cannot become a dataset is one line that says why") {
  const Folder folder;
  const std::string good = folder.write("good.txt", "some text");
  const std::string empty = folder.write("empty.txt", "");
  CHECK(message_of<InputError>(folder.spec({{"train", {empty}}})).find("is empty") != std::string::npos);
  CHECK(message_of<InputError>(folder.spec({{"train", {folder.path("none.txt")}}})).find("no such file") !=
        std::string::npos);
  CHECK(message_of<UsageError>(folder.spec({{"valid", {good}}})).find("no training text") != std::string::npos);
  CHECK(message_of<UsageError>(folder.spec({{"train", {"-"}}, {"valid", {"-"}}})).find("stdin 2 times") !=
        std::string::npos);
  TextDatasetSpec same = folder.spec({{"train", {good}}});
  same.output = good;
  CHECK(message_of<InputError>(same).find("both the text and the output") != std::string::npos);
  CHECK(read_text(good) == "some text");
  TextDatasetSpec shares = folder.spec({{"train", {good}}});
  shares.valid_share = shares.test_share = 0.5;
  CHECK(message_of<UsageError>(shares).find("nothing to train on") != std::string::npos);
  shares.test_share = 0.01;
  shares.valid_share = 0.98;
  CHECK(message_of<InputError>(shares).find("the split train has no token") != std::string::npos);
  CHECK(!std::filesystem::exists(shares.output));
  TextDatasetSpec unknown = folder.spec({{"train", {good}}});
  unknown.tokenizer = "letters";
  CHECK(message_of<UsageError>(unknown).find("letters") != std::string::npos);
}

TEST_CASE("checkpoints of equal models are averaged") {
  const Folder folder;
  Checkpoint a;
  a.facts.config = "{\"dim\":2}";
  a.facts.progress = "{}";
  a.facts.tokenizer = {"bytes", {}};
  a.facts.provenance.commands = {"train a"};
  a.parameters = {{"w", {2}, {1, 5}}, {"deep.b", {1, 2}, {0, -2}}};
  Checkpoint b = a;
  b.facts.provenance.commands = {"train b"};
  b.parameters[0].data = {3, 6};
  save_checkpoint(folder.path("a.h5"), a);
  save_checkpoint(folder.path("b.h5"), b);
  average_checkpoints({folder.path("a.h5"), folder.path("b.h5")}, folder.path("mean.h5"), {"convert average"});
  const Checkpoint mean = load_checkpoint(folder.path("mean.h5"));
  REQUIRE(mean.parameters.size() == 2);
  CHECK(mean.parameters[0].data == std::vector<float>{2, 5.5F});
  CHECK(mean.parameters[1].data == std::vector<float>{0, -2});
  CHECK(mean.facts.config == a.facts.config);
  CHECK(mean.facts.progress.empty());
  CHECK(mean.facts.provenance.commands == std::vector<std::string>{"train a", "train b", "convert average"});

  b.facts.config = "{\"dim\":3}";
  save_checkpoint(folder.path("b.h5"), b);
  CHECK_THROWS_AS(average_checkpoints({folder.path("a.h5"), folder.path("b.h5")}, folder.path("mean.h5"), {}),
                  InputError);
}
