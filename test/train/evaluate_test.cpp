#include "train/evaluate.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "base/rng.h"
#include "models/language_model.h"
#include "text/byte_tokenizer.h"
#include "text/tokenizer_trainer.h"
#include "train/line_scorer.h"
#include "train/position_bins.h"

using namespace quipu;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr Index kVocab = 11;
const double kTolerance = sizeof(Real) == 8 ? 1e-9 : 2e-4;

std::unique_ptr<LanguageModel> make_model(const std::string& mixer, Index vocab = kVocab) {
  ModelConfig config;
  config.vocab = vocab;
  config.dim = 12;
  config.layers = 2;
  config.heads = 2;
  config.length = 64;
  config.mixer = mixer;
  auto model = std::make_unique<LanguageModel>(config, false);
  model->parameters().initialise(3);
  // Larger than they start, so that the context matters.
  for (Real& x : model->parameters().values()) x *= Real{4};
  return model;
}

std::vector<Tokens> make_documents(const std::vector<Index>& lengths) {
  const Rng rng(7, 0, 0);
  std::vector<Tokens> documents;
  std::uint64_t index = 0;
  for (const Index length : lengths) {
    Tokens& tokens = documents.emplace_back();
    for (Index i = 0; i < length; ++i)
      tokens.push_back(static_cast<std::int32_t>(rng.uniform(index++) * static_cast<double>(kVocab)));
  }
  return documents;
}

/// The loss of one token, read from a fresh state after `context`: the obvious way.
double nll_after(const LanguageModel& model, const Tokens& context, std::int32_t target) {
  const auto length = static_cast<Index>(context.size());
  const Layout layout = Layout::fresh(1, length);
  ModelState state = model.initial_state(1);
  Tape tape(false);
  const Var hidden = model.forward(tape, context, {.layout = layout}, state);
  Tokens targets(context.size(), kNoTarget);
  targets.back() = target;
  return model.loss(tape, hidden, targets, {}).nll_nats.back();
}

/// The scores that a protocol asks for, token by token.
std::vector<TokenScore> expected_scores(const LanguageModel& model, const std::vector<Tokens>& documents,
                                        const Protocol& protocol, const Tokens& prefix = {}) {
  std::vector<TokenScore> scores;
  Index begin = 0;
  for (const Tokens& document : documents) {
    Tokens all = prefix;
    all.insert(all.end(), document.begin(), document.end());
    const auto known = static_cast<Index>(prefix.size());
    for (Index t = std::max<Index>(1, known); t < static_cast<Index>(all.size()); ++t) {
      Index from = 0;  // the first window that predicts t
      while (!protocol.is_stream() && t > from + protocol.window) from += protocol.stride;
      const Tokens context(all.begin() + from, all.begin() + t);
      const std::int32_t token = all[static_cast<std::size_t>(t)];
      scores.push_back({begin + t - known, t - from, token, nll_after(model, context, token)});
    }
    begin += static_cast<Index>(document.size());
  }
  return scores;
}

EvalOptions small_batches(const std::string& protocol) {
  EvalOptions options;
  options.protocol = parse_protocol(protocol);
  options.batch_tokens = 23;
  options.lanes = 3;
  return options;
}

void check_equal(const std::vector<TokenScore>& scores, const std::vector<TokenScore>& expected) {
  REQUIRE(scores.size() == expected.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    INFO("score " << i);
    REQUIRE(scores[i].position == expected[i].position);
    REQUIRE(scores[i].context == expected[i].context);
    REQUIRE(scores[i].token == expected[i].token);
    REQUIRE(scores[i].nll_nats == doctest::Approx(expected[i].nll_nats).epsilon(kTolerance));
  }
}

const std::vector<Index> kLengths = {9, 1, 0, 2, 40, 3, 3, 1, 24, 23, 22, 1, 5};

}  // namespace

TEST_CASE("every protocol scores each token once, from exactly its context") {
  const std::vector<Tokens> documents = make_documents(kLengths);
  for (const char* mixer : {"gsa", "linear_attention", "attention"}) {
    const auto model = make_model(mixer);
    for (const char* protocol : {"stream", "blocks:1", "blocks:5", "blocks:30", "slide:7:3", "slide:6:1", "last:4/9"})
      for (const bool with_prefix : {false, true}) {
        INFO(mixer << " " << protocol << (with_prefix ? " with a prefix" : ""));
        EvalOptions options = small_batches(protocol);
        if (with_prefix) options.prefix = {4, 0, 9, 2};
        std::vector<TokenScore> scores;
        options.on_token = [&](const TokenScore& score) { scores.push_back(score); };
        Evaluator evaluator(*model, options);
        for (const Tokens& document : documents) {
          evaluator.add(document);
          evaluator.end_document();
        }
        const EvalResult result = evaluator.finish();
        const auto expected = expected_scores(*model, documents, options.protocol, options.prefix);
        check_equal(scores, expected);

        double sum = 0;
        for (const TokenScore& score : expected) sum += score.nll_nats;
        CHECK(result.nll_sum_nats == doctest::Approx(sum).epsilon(kTolerance));
        CHECK(result.documents == static_cast<Index>(kLengths.size()));
        CHECK(result.tokens == static_cast<Index>(expected.size()));
        CHECK(result.unscored_tokens == (with_prefix ? 0 : 12));
      }
  }
}

TEST_CASE("the scores do not depend on how the tokens are handed over") {
  const std::vector<Tokens> documents = make_documents({50, 7, 1, 31});
  const auto model = make_model("gsa");
  for (const char* protocol : {"stream", "slide:7:3"}) {
    INFO(protocol);
    const auto expected = expected_scores(*model, documents, parse_protocol(protocol));
    for (const std::size_t piece : {1u, 4u, 100u}) {
      std::vector<TokenScore> scores;
      EvalOptions options = small_batches(protocol);
      options.on_token = [&](const TokenScore& score) { scores.push_back(score); };
      Evaluator evaluator(*model, options);
      for (const Tokens& document : documents) {
        for (std::size_t at = 0; at < document.size(); at += piece) {
          evaluator.add(std::span(document).subspan(at, std::min(piece, document.size() - at)));
          if (at % 3 == 0) evaluator.flush();
        }
        if (&document != &documents.back()) evaluator.end_document();
      }
      evaluator.finish();
      check_equal(scores, expected);
    }
  }
}

TEST_CASE("stream equals the recurrent form, step by step") {
  const Tokens document = make_documents({60}).front();
  for (const char* mixer : {"gsa", "linear_attention", "attention"}) {
    INFO(mixer);
    const auto model = make_model(mixer);
    ModelState state = model->initial_state(1);
    Scratch scratch;
    Tensor logits({1, kVocab});
    double sum = 0;
    for (std::size_t t = 0; t + 1 < document.size(); ++t) {
      model->step(std::span(document).subspan(t, 1), state, scratch, logits.matrix());
      double total = 0;
      for (Index i = 0; i < kVocab; ++i) total += std::exp(static_cast<double>(logits.data()[i]));
      sum += std::log(total) - static_cast<double>(logits.data()[document[t + 1]]);
    }
    Evaluator evaluator(*model, small_batches("stream"));
    evaluator.add(document);
    CHECK(evaluator.finish().nll_sum_nats == doctest::Approx(sum).epsilon(kTolerance));
  }
}

TEST_CASE("a split is scored as its documents are, whole or from its beginning") {
  const std::vector<Tokens> documents = make_documents({9, 1, 2, 40, 3});
  const std::string path = (std::filesystem::temp_directory_path() / "quipu_evaluate_test.h5").string();
  {
    DatasetWriter writer(path, {"bytes", {}}, kVocab, {});
    SplitWriter& split = writer.split("test");
    for (const Tokens& document : documents) {
      split.append(document);
      split.end_document();
    }
    split.add_counts(100, 20);
    writer.commit();
  }
  const Dataset data(path);
  std::filesystem::remove(path);
  const auto model = make_model("gsa");
  std::vector<TokenScore> scores;
  EvalOptions options = small_batches("stream");
  options.on_token = [&](const TokenScore& score) { scores.push_back(score); };
  const EvalResult result = evaluate(*model, data.split("test"), options);
  check_equal(scores, expected_scores(*model, documents, options.protocol));
  CHECK(result.bytes == 100);
  CHECK(result.words == 20);
  CHECK(result.bits_per_byte() == doctest::Approx(result.nll_sum_nats / std::log(2.0) / 100));

  scores.clear();
  const EvalResult part = evaluate(*model, data.split("test"), options, 20);
  CHECK(part.tokens == 8 + 0 + 1 + 7);
  CHECK(std::isnan(part.bits_per_byte()));
}

TEST_CASE("bytes and words are those of the scored text") {
  const auto model = make_model("gsa", 256);
  const ByteTokenizer tokenizer;
  EvalOptions options = small_batches("stream");
  options.tokenizer = &tokenizer;
  Evaluator evaluator(*model, options);
  for (const char* text : {"I am", "hello you", "a", " b", "\n"}) {
    evaluator.add(tokenizer.encode(text));
    evaluator.end_document();
  }
  EvalResult result = evaluator.finish();
  CHECK(result.unscored_tokens == 5);
  CHECK(result.unscored_bytes == 5);
  CHECK(result.unscored_words == 2);  // "I" and "a"; the ends of "hello" and "b" are scored
  result.count_text(17, 6);
  CHECK(result.bytes == 12);
  CHECK(result.words == 4);
}

TEST_CASE("lines are scored as documents of their own, however the text arrives") {
  const auto model = make_model("gsa", 256);
  const ByteTokenizer tokenizer;
  const std::string text = "a first line\n\nx\n" + std::string(300, 'y') + "\nthe last, without its end";
  std::vector<Tokens> documents;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    documents.push_back(tokenizer.encode(text.substr(at, end - at)));
    at = end;
  }
  std::vector<double> expected(documents.size(), 0);
  for (std::size_t i = 0; i < documents.size(); ++i)
    for (const TokenScore& score : expected_scores(*model, {documents[i]}, {})) expected[i] += score.nll_nats;
  for (const std::size_t piece : {1u, 17u, 1000u}) {
    std::vector<LineScore> lines;
    LineScorer scorer(*model, tokenizer, small_batches("stream"),
                      [&](const LineScore& line) { lines.push_back(line); });
    for (std::size_t at = 0; at < text.size(); at += piece) {
      scorer.add(std::string_view(text).substr(at, piece));
      // A line is answered as soon as it ends.
      const auto ended =
          std::count(text.begin(), text.begin() + static_cast<Index>(std::min(at + piece, text.size())), '\n');
      REQUIRE(static_cast<Index>(lines.size()) == ended);
    }
    const EvalResult result = scorer.finish();
    REQUIRE(lines.size() == documents.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      CHECK(lines[i].line == static_cast<Index>(i) + 1);
      CHECK(lines[i].score.tokens == static_cast<Index>(documents[i].size()) - 1);
      CHECK(lines[i].bytes == documents[i].size() - 1);
      CHECK(lines[i].score.nll_nats == doctest::Approx(expected[i]).epsilon(kTolerance));
    }
    CHECK(std::isnan(lines[1].perplexity()));
    CHECK(result.bytes == text.size() - documents.size());
  }
}

TEST_CASE("a token outside the vocabulary and a loss that is not finite are named") {
  const auto model = make_model("gsa");
  Evaluator outside(*model, small_batches("stream"));
  outside.add(Tokens{1, 2, static_cast<std::int32_t>(kVocab)});
  CHECK_THROWS_AS(outside.finish(), InputError);
  for (Real& x : model->parameters().values()) x = std::numeric_limits<Real>::quiet_NaN();
  Evaluator broken(*model, small_batches("stream"));
  broken.add(Tokens{1, 2, 3});
  CHECK_THROWS_AS(broken.finish(), NumericError);
}

TEST_CASE("bins double with the context") {
  PositionBins bins;
  for (Index context = 1; context <= 9; ++context) bins.add(context, context, 1);
  REQUIRE(bins.bins().size() == 4);
  CHECK(bins.bins()[2].from == 4);
  CHECK(bins.bins()[2].to == 7);
  CHECK(bins.bins()[2].tokens == 4);
  CHECK(bins.bins()[3].nll_sum_nats == 2);
  CHECK(bins.bins()[3].mean_context() == 8.5);
  CHECK(std::isnan(bins.bins()[3].standard_error()));
}

TEST_CASE("the standard error of a bin is that over stretches of the text") {
  // Losses that are alike within a stretch: as many samples as stretches, however many tokens those hold.
  const Rng rng(3, 0, rng_site("stretches"));
  PositionBins bins;
  std::vector<double> sums, counts;
  double sum = 0, count = 0;
  for (Index stretch = 0; stretch < 40; ++stretch) {
    const double loss = 2 + rng.uniform(static_cast<std::uint64_t>(stretch));
    const Index tokens = 3 + stretch % 5;
    for (Index i = 0; i < tokens; ++i) bins.add(70 + i, stretch * PositionBins::kStretch + 11 * i, loss);
    bins.add(7, stretch * PositionBins::kStretch + 100, 5);
    sums.push_back(loss * static_cast<double>(tokens)), counts.push_back(static_cast<double>(tokens));
    sum += sums.back(), count += counts.back();
  }
  double residuals = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) residuals += std::pow(sums[i] - sum / count * counts[i], 2);
  const PositionBins::Bin& bin = bins.bins()[6];
  CHECK(bin.nats_per_token() == doctest::Approx(sum / count).epsilon(1e-12));
  CHECK(bin.standard_error() == doctest::Approx(std::sqrt(residuals * 40 / 39) / count).epsilon(1e-9));
  CHECK(bins.bins()[2].standard_error() == 0);
  CHECK(bins.bins()[3].tokens == 0);
  CHECK(std::isnan(bins.bins()[3].standard_error()));
}
