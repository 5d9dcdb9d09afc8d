// The last losses of a long stream. test/slow/million_stream_test.sh gives the model, the text, and the file to write
// them to, in QUIPU_MILLION_MODEL, .._TEXT and .._LOSSES, and compares those of the double build with the tool's.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "text/byte_tokenizer.h"
#include "text/text_reader.h"
#include "train/evaluate.h"
#include "train/model_checkpoint.h"
#include "train/small_model.h"

using namespace quipu;

namespace {

constexpr Index kTail = 1000;

/// The losses of the last tokens that an evaluation hands over.
class Tail {
 public:
  EvalOptions options() {
    EvalOptions options;
    options.on_token = [this](const TokenScore& score) { losses_[static_cast<std::size_t>(count_++ % kTail)] = score; };
    return options;
  }
  Index count() const { return count_; }
  std::vector<TokenScore> in_order() const {
    std::vector<TokenScore> losses;
    for (Index i = std::max<Index>(0, count_ - kTail); i < count_; ++i)
      losses.push_back(losses_[static_cast<std::size_t>(i % kTail)]);
    return losses;
  }

 private:
  std::vector<TokenScore> losses_ = std::vector<TokenScore>(kTail);
  Index count_ = 0;
};

}  // namespace

TEST_CASE("million: the last losses of a stream are finite, and are written where they are asked for" *
          doctest::skip()) {
  const char *const path = std::getenv("QUIPU_MILLION_MODEL"), *const text = std::getenv("QUIPU_MILLION_TEXT"),
                    *const losses = std::getenv("QUIPU_MILLION_LOSSES");
  Tail tail;
  EvalOptions options = tail.options();
  if (path == nullptr || text == nullptr || losses == nullptr) {
    const auto model = small_model("gsa", 41, 1, 3);
    const Rng rng(3, 0, rng_site("million"));
    Evaluator evaluator(*model, options);
    for (std::uint64_t i = 0; i < 20000; ++i) evaluator.add(std::vector{static_cast<std::int32_t>(rng.below(i, 41))});
    CHECK(evaluator.finish().tokens == 19999);
  } else {
    const CheckpointFile file(path);
    const auto model = load_model(file);
    const auto tokenizer = make_tokenizer(file.facts().tokenizer);
    TextReader reader(text);
    evaluate_text(*model, *tokenizer, reader, parse_document_rule("file"), options);
  }
  REQUIRE(tail.count() > kTail);
  for (const TokenScore& score : tail.in_order()) REQUIRE(std::isfinite(score.nll_nats));
  if (losses == nullptr) return;
  std::ofstream out(losses);
  for (const TokenScore& score : tail.in_order()) out << fmt::format("{}\t{:.17g}\n", score.position, score.nll_nats);
  REQUIRE(out.good());
}
