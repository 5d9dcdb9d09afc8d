#include "train/question_score.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "text/byte_tokenizer.h"
#include "train/completer.h"
#include "train/small_model.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

/// A tokenizer of bytes and of one longer token, which it prefers: a stand-in for learned ones whose tokens span
/// joints.
class OnePair final : public Tokenizer {
 public:
  explicit OnePair(std::string pair) : pair_(std::move(pair)) {}
  std::string_view kind() const override { return "bytes"; }
  std::int64_t vocab_size() const override { return 257; }
  std::size_t encode_some(std::string_view text, TextPart, std::vector<std::int32_t>& tokens) const override {
    for (std::size_t i = 0; i < text.size();) {
      const bool pair = text.substr(i).starts_with(pair_);
      tokens.push_back(pair ? 256 : static_cast<unsigned char>(text[i]));
      i += pair ? pair_.size() : 1;
    }
    return text.size();
  }
  std::size_t cut_after(std::string_view text, std::size_t) const override { return text.size(); }
  std::string_view token_bytes(std::int32_t id) const override {
    return id == 256 ? std::string_view(pair_) : bytes_.token_bytes(id);
  }
  TokenizerData serialize() const override { return {"bytes", {}}; }

 private:
  ByteTokenizer bytes_;
  std::string pair_;
};

/// The log likelihood of tokens from `first` on, by single steps.
double nll(const SequenceModel& model, const std::vector<std::int32_t>& tokens, std::size_t first) {
  ModelState state = model.initial_state(1);
  Scratch scratch;
  const Tensor logits({1, model.vocab()});
  double sum = 0;
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    model.step({&tokens[t], 1}, state, scratch, logits.matrix());
    double total = 0;
    for (const Real x : logits.span()) total += std::exp(static_cast<double>(x));
    if (t + 1 >= first) sum += std::log(total) - static_cast<double>(logits.data()[tokens[t + 1]]);
  }
  return sum;
}

RecallLines lines_of(LineKind kind, std::vector<RecallLine> lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].line = static_cast<Index>(i) + 1;
  return {"q.jsonl", "0", kind, std::move(lines)};
}

}  // namespace

TEST_CASE("question rows: a token that spans the joint is scored, from the same place for all") {
  const OnePair tokenizer(": y");  // the end of the question and the beginning of "yes"
  const Continuations all = encode_continuations(tokenizer, "Is it? A:", {" no", " yes", " yo"});
  CHECK(all.joints == 2);
  CHECK(all.scored_from == 8);  // the colon stands in what is compared
  CHECK(tokenizer.decode(all.tokens[1]) == "Is it? A: yes");
  CHECK(all.tokens[1][8] == 256);
  CHECK(all.tokens[0][8] == ':');
  bool truncated = false;
  const ScoredRow row = row_of(all.tokens[0], all.scored_from, {}, "q", truncated);
  CHECK(!truncated);
  CHECK(row.inputs.size() == 11);
  CHECK(row.targets[6] == kNoTarget);
  CHECK(row.targets[7] == ':');
  CHECK(row.targets[10] == 'o');
  const Continuations none = encode_continuations(tokenizer, "Is it? A.", {" no", " yes"});
  CHECK(none.joints == 0);
  CHECK(none.scored_from == 9);
  const Continuations bare = encode_continuations(tokenizer, "", {"no", "yes"});
  CHECK(bare.scored_from == 1);
  CHECK(bare.tokens[0] == std::vector<std::int32_t>{'\n', 'n', 'o'});
}

TEST_CASE("question rows: longer texts are cut at their beginning, or refused") {
  std::vector<std::int32_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 0);
  bool truncated = false;
  const ScoredRow row = row_of(tokens, 17, {0, 8}, "q", truncated);
  CHECK(truncated);
  CHECK(row.inputs == std::vector<std::int32_t>{11, 12, 13, 14, 15, 16, 17, 18});
  CHECK(row.targets == std::vector<std::int32_t>{-1, -1, -1, -1, -1, 17, 18, 19});
  CHECK_THROWS_WITH_AS(row_of(tokens, 17, {12, 0}, "q: line 3", truncated),
                       "q: line 3: has 19 tokens, and the model can read 12; cut them with --max-tokens 12",
                       InputError);
  CHECK_THROWS_WITH_AS(row_of(tokens, 5, {12, 100}, "q: line 3", truncated),
                       "q: line 3: 15 tokens are to be scored, and 12 can be read; give a larger --max-tokens",
                       InputError);
  const ByteTokenizer bytes;
  CHECK(prompt_of(bytes, "abcdef", 3, {0, 7}, "q", truncated) == bytes.encode("cdef"));
  CHECK_THROWS_WITH_AS(prompt_of(bytes, "abcdef", 7, {0, 7}, "q", truncated),
                       "q: an answer may take 7 tokens, and 7 can be read; give a smaller --answer-tokens", InputError);
}

TEST_CASE("question rows: batches hold every row once, and not too much") {
  const std::vector<Index> lengths{9, 1, 4, 30, 2, 2, 8};
  std::vector<std::size_t> seen;
  for (const auto& batch : batches_of(lengths, 16)) {
    Index longest = 0;
    for (const std::size_t i : batch) longest = std::max(longest, lengths[i]), seen.push_back(i);
    CHECK((batch.size() == 1 || longest * static_cast<Index>(batch.size()) <= 16));
  }
  std::ranges::sort(seen);
  CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("questions: choices are compared by their likelihood, as it is, per token and per byte") {
  const OnePair tokenizer("e f");
  const auto model = small_model("gsa", 257);
  std::vector<RecallLine> lines(9);
  Share plain, by_token, by_byte;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    RecallLine& line = lines[i];
    line.question = "Where " + std::to_string(i * 37) + " e";
    line.choices = {"f" + std::string(i, 'x'), "to", "frogs and toads"};
    line.label = static_cast<Index>(i % 3);
    std::vector<double> cost, token, byte;
    for (const std::string& choice : line.choices) {
      const auto tokens = tokenizer.encode(line.question + " " + choice);
      const std::size_t first = line.question.size() - 1;  // "e f" spans the joint
      cost.push_back(nll(*model, tokens, first));
      token.push_back(cost.back() / static_cast<double>(tokens.size() - first));
      byte.push_back(cost.back() / static_cast<double>(choice.size() + 1));
    }
    const auto right = [&](const std::vector<double>& costs) {
      return std::ranges::min_element(costs) - costs.begin() == line.label;
    };
    plain.add(right(cost)), by_token.add(right(token)), by_byte.add(right(byte));
  }
  const QuestionResult result = score_questions(*model, tokenizer, lines_of(LineKind::choices, lines),
                                                {.prompt = "{question}", .batch_tokens = 64});
  CHECK(result.choices.n == 9);
  CHECK(result.choices.right == plain.right);
  CHECK(result.choices_by_token.right == by_token.right);
  CHECK(result.choices_by_byte.right == by_byte.right);
  CHECK(result.chance == doctest::Approx(1.0 / 3));
  CHECK(result.joints == 18);
  CHECK(result.forms.rows == 16);
  CHECK(result.forms.disagreeing == 0);
}

TEST_CASE("questions: where each has a blank, what stands behind it is compared") {
  const ByteTokenizer tokenizer;
  const auto model = small_model("gsa", 256);
  std::vector<RecallLine> lines(8);
  Share expected;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].question = std::to_string(i) + " saw _ go.";
    lines[i].choices = {"Ann", "Christopher"};
    lines[i].label = static_cast<Index>(i % 2);
    std::vector<double> costs;
    for (const std::string& choice : lines[i].choices) {
      const std::string before = std::to_string(i) + " saw " + choice;
      costs.push_back(nll(*model, tokenizer.encode(before + " go."), before.size()));
    }
    expected.add((costs[1] < costs[0] ? 1 : 0) == lines[i].label);
  }
  const QuestionResult result = score_questions(*model, tokenizer, lines_of(LineKind::choices, lines), {.prompt = "x"});
  CHECK(result.choices.right == expected.right);
  CHECK(result.joints == 0);
}

TEST_CASE("questions: completions are what single steps make, side by side and with stops") {
  const ByteTokenizer tokenizer;
  for (const char* mixer : {"gsa", "attention"}) {
    const auto model = small_model(mixer, 256);
    std::vector<std::vector<std::int32_t>> prompts;
    for (const char* text : {"a", "some words", "and a longer prompt than those", "xyz"})
      prompts.push_back(tokenizer.encode(text));
    const auto together = Completer(*model, 8).complete(
        prompts, 9, [](std::size_t lane, auto so_far) { return so_far.size() < 3 + 2 * lane; });
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      CHECK(together[i].size() == std::min<std::size_t>(9, 3 + 2 * i));
      std::vector<std::int32_t> tokens = prompts[i];
      tokens.insert(tokens.end(), together[i].begin(), together[i].end());
      const auto alone = Completer(*model, 1000)
                             .complete(std::span(&prompts[i], 1), static_cast<Index>(together[i].size()),
                                       [](std::size_t, auto) { return true; });
      CHECK(alone[0] == together[i]);
    }
  }
}

TEST_CASE("questions: answers are found in completions, and what was cut is said") {
  const ByteTokenizer tokenizer;
  const auto model = small_model("gsa", 256);
  std::vector<RecallLine> lines(3);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    RecallLine& line = lines[i];
    line.context = i < 2 ? std::string(20 * i, 'c') + " answer" : "answer " + std::string(40, 'c');
    line.question = "What " + std::to_string(i) + "?";
    line.answers = {"answer"};
  }
  const QuestionOptions options{.prompt = "{context} {question}", .limit = {0, 36}, .answer_tokens = 6, .stop = ""};
  const auto prompt = tokenizer.encode(fill_template(options.prompt, lines[0]));
  const auto completion =
      Completer(*model, 1000).complete(std::span(&prompt, 1), 6, [](auto, auto) { return true; })[0];
  std::string said = tokenizer.decode(completion);
  said.erase(0, said.find_first_not_of(" \t\r\n"));
  REQUIRE(!said.empty());
  lines[0].answers = {"nothing of it", said};
  const QuestionResult result = score_questions(*model, tokenizer, lines_of(LineKind::answers, lines), options);
  CHECK(result.contains.n == 3);
  CHECK(result.contains_as_is.right == 1);
  CHECK(result.contains.right == 1);
  CHECK(result.truncated == 2);        // 35 and 55 tokens, and room for 6 more
  CHECK(result.supported.right == 1);  // the first answer was never there, the last was cut off
  CHECK(result.forms.disagreeing == 0);
}

TEST_CASE("questions: last words") {
  const ByteTokenizer tokenizer;
  const auto model = small_model("attention", 256);
  std::vector<RecallLine> lines(2);
  lines[0].text = "this is the end";
  lines[1].text = "a b";
  const QuestionResult result = score_questions(*model, tokenizer, lines_of(LineKind::last_word, lines), {});
  CHECK(result.words.n == 2);
  CHECK(result.tokens == 6);  // " end" and " b"
  CHECK(result.nll_sum_nats == doctest::Approx(nll(*model, tokenizer.encode(lines[0].text), 11) +
                                               nll(*model, tokenizer.encode(lines[1].text), 1))
                                   .epsilon(1e-4));
}

}  // namespace quipu::inline QUIPU_REAL_NS
