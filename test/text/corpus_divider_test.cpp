#include "text/corpus_divider.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"

using namespace quipu;

namespace {

/// The documents, each ended by |.
class Marked final : public DocumentSink {
 public:
  void text(std::string_view block) override { all += block; }
  void end_document() override { all += '|'; }
  std::string all;
};

struct Three {
  Marked train, valid, test;
  CorpusDivider divider;

  Three(double valid_share, double test_share, std::uint64_t bytes, CorpusDivider::Cut cut)
      : divider({{&train, 1 - valid_share - test_share}, {&valid, valid_share}, {&test, test_share}}, bytes, cut) {}

  void add(std::string_view document, std::size_t block) {
    for (std::size_t at = 0; at < document.size(); at += block) divider.text(document.substr(at, block));
    divider.end_document();
  }
};

}  // namespace

TEST_CASE("corpus divider: a document is cut at the byte, or stays whole") {
  for (const std::size_t block : {1, 2, 3, 20}) {
    Three inside(0.25, 0.25, 20, CorpusDivider::Cut::kInside);
    inside.add("0123456", block);
    inside.add("789abcdefghij", block);
    CHECK(inside.train.all == "0123456|789|");
    CHECK(inside.valid.all == "abcde|");
    CHECK(inside.test.all == "fghij|");

    Three whole(0.25, 0.25, 20, CorpusDivider::Cut::kAfter);
    for (const std::string_view document : {"01234567", "89a", "bcdef", "ghij"}) whole.add(document, block);
    CHECK(whole.train.all == "01234567|89a|");
    CHECK(whole.valid.all == "bcdef|");
    CHECK(whole.test.all == "ghij|");
  }
}

TEST_CASE("corpus divider: a character is not cut, bytes that are none are") {
  for (const std::size_t block : {1, 2, 20}) {
    Three characters(0.5, 0, 10, CorpusDivider::Cut::kInside);
    characters.add("abcd\u20acxyz", block);
    CHECK(characters.train.all == "abcd\u20ac|");
    CHECK(characters.valid.all == "xyz|");
    Three bytes(0.5, 0, 10, CorpusDivider::Cut::kInside);
    bytes.add(std::string(10, '\x80'), block);
    CHECK(bytes.train.all == std::string(8, '\x80') + "|");
    CHECK(bytes.valid.all == std::string(2, '\x80') + "|");
  }
}

TEST_CASE("corpus divider: a share that ends with a document makes no empty one") {
  Three three(0.5, 0, 4, CorpusDivider::Cut::kInside);
  three.add("ab", 1);
  three.add("cd", 1);
  CHECK(three.train.all == "ab|");
  CHECK(three.valid.all == "cd|");
  CHECK(three.test.all.empty());
}

TEST_CASE("corpus divider: shares that are none are errors") {
  Marked sink;
  CHECK_THROWS_AS(CorpusDivider({{&sink, 0.9}}, 10, CorpusDivider::Cut::kAfter), UsageError);
  CHECK_THROWS_AS(CorpusDivider({{&sink, 1.5}, {&sink, -0.5}}, 10, CorpusDivider::Cut::kAfter), UsageError);
  CHECK_THROWS_AS(CorpusDivider({}, 10, CorpusDivider::Cut::kAfter), UsageError);
}
