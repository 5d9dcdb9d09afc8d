#include "train/recall_score.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "grad/ops_loss.h"
#include "train/small_model.h"

namespace quipu::inline QUIPU_REAL_NS {
namespace {

constexpr Index kVocab = 13, kLength = 21;

/// Rows of unequal shape: row i is scored at every (2 + i % 3)-th token up to length 21 - i % 5.
std::vector<ScoredRow> sample_rows(Index count) {
  std::vector<ScoredRow> rows;
  for (Index i = 0; i < count; ++i) {
    ScoredRow row;
    for (Index t = 0; t < kLength; ++t) {
      row.inputs.push_back(static_cast<std::int32_t>((t * t + 3 * i + t / 2) % kVocab));
      const bool scored = t % (2 + i % 3) == 0 && t < kLength - i % 5;
      row.targets.push_back(scored ? static_cast<std::int32_t>((t + i) % kVocab) : kNoTarget);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What the recurrent form says, one row and one token at a time.
std::vector<TokenOutcome> naive(const SequenceModel& model, const std::vector<ScoredRow>& rows) {
  std::vector<TokenOutcome> outcomes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ModelState state = model.initial_state(1);
    Scratch scratch;
    const Tensor logits({1, model.vocab()});
    for (std::size_t t = 0; t < rows[i].inputs.size(); ++t) {
      model.step({&rows[i].inputs[t], 1}, state, scratch, logits.matrix());
      const std::int32_t target = rows[i].targets[t];
      if (target == kNoTarget) continue;
      double total = 0;
      std::int32_t best = 0;
      for (Index v = 0; v < model.vocab(); ++v) {
        total += std::exp(static_cast<double>(logits.data()[v]));
        if (logits.data()[v] > logits.data()[best]) best = static_cast<std::int32_t>(v);
      }
      outcomes.push_back({static_cast<Index>(i), static_cast<Index>(t), target, best,
                          std::log(total) - static_cast<double>(logits.data()[target])});
    }
  }
  return outcomes;
}

void write_task(const std::string& path, const std::vector<ScoredRow>& rows, Index vocab = kVocab) {
  DatasetWriter writer(path, {"bytes", {}}, vocab, {});
  for (const ScoredRow& row : rows)
    writer.split("test").append_examples(row.inputs, row.targets, static_cast<Index>(row.inputs.size()));
  writer.commit();
}

}  // namespace

TEST_CASE("row scorer: says what the recurrent form says, in pieces of any size") {
  const auto rows = sample_rows(7);
  for (const char* mixer : {"gsa", "attention"}) {
    const auto model = small_model(mixer, kVocab);
    const auto expected = naive(*model, rows);
    for (const Index chunk : {1, 10, 30, 1000}) {
      INFO(mixer << ", chunk " << chunk);
      Index read = 0;
      RowScorer scorer(*model, chunk);
      scorer.on_tokens = [&](Index tokens) { read += tokens; };
      const auto outcomes = scorer.score(rows);
      REQUIRE(outcomes.size() == expected.size());
      Index differing = 0;
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        CHECK(outcomes[i].row == expected[i].row);
        CHECK(outcomes[i].position == expected[i].position);
        CHECK(outcomes[i].target == expected[i].target);
        CHECK(outcomes[i].nll_nats == doctest::Approx(expected[i].nll_nats).epsilon(1e-3));
        differing += outcomes[i].predicted != expected[i].predicted;
      }
      CHECK(differing <= 1);  // a tie
      Index needed = 0;
      for (const ScoredRow& row : rows) needed += row.length();
      CHECK(read == needed);
    }
  }
}

TEST_CASE("row scorer: both forms agree, whole and behind a state of the parallel form") {
  const auto rows = sample_rows(6);
  for (const char* mixer : {"gsa", "attention"}) {
    const auto model = small_model(mixer, kVocab);
    Index scored = 0;
    for (const TokenOutcome& o : naive(*model, rows)) scored += o.row >= 0;
    const FormComparison whole = RowScorer(*model, 16).compare(rows, 1000);
    CHECK(whole.rows == 6);
    CHECK(whole.tokens == scored);
    CHECK(whole.disagreeing == 0);
    CHECK(whole.logit_difference < FormComparison::kRounding);
    CHECK(whole.right_parallel == whole.right_recurrent);
    const FormComparison end = RowScorer(*model, 16).compare(rows, 7);
    CHECK(end.tokens > 0);
    CHECK(end.tokens < scored);
    CHECK(end.disagreeing == 0);
    CHECK(end.logit_difference < FormComparison::kRounding);
  }
}

/// A model whose recurrent form is another model's.
class TwoFaced final : public SequenceModel {
 public:
  TwoFaced(SequenceModel& parallel, const SequenceModel& recurrent) : a_(parallel), b_(recurrent) {}
  Parameters& parameters() override { return a_.parameters(); }
  Index vocab() const override { return a_.vocab(); }
  ModelState initial_state(Index lanes) const override { return a_.initial_state(lanes); }
  void reset(ModelState& state, Index lane) const override { a_.reset(state, lane); }
  Index state_bytes(Index length) const override { return a_.state_bytes(length); }
  Var forward(Tape& tape, std::span<const std::int32_t> tokens, const Context& context,
              ModelState& state) const override {
    return a_.forward(tape, tokens, context, state);
  }
  LossOutput loss(Tape& tape, const Var& hidden, std::span<const std::int32_t> targets,
                  const LossOptions& options) const override {
    return a_.loss(tape, hidden, targets, options);
  }
  void logits_into(Matrix logits, Matrix hidden) const override { a_.logits_into(logits, hidden); }
  void step(std::span<const std::int32_t> tokens, ModelState& state, Scratch& scratch, Matrix logits) const override {
    b_.step(tokens, state, scratch, logits);
  }

 private:
  SequenceModel& a_;
  const SequenceModel& b_;
};

TEST_CASE("recall score: a model whose two forms disagree is found out") {
  const quipu_test::TemporaryFolder folder;
  write_task(folder / "t.h5", sample_rows(5));
  const Dataset data(folder / "t.h5");
  const auto one = small_model("gsa", kVocab, 1), other = small_model("gsa", kVocab, 2);
  const TwoFaced model(*one, *other);
  CHECK_THROWS_WITH_AS(score_recall(model, data.split("test"), {}, "t.h5"),
                       doctest::Contains("the recurrent form predicts otherwise than the parallel one"), InternalError);
  CHECK_NOTHROW(score_recall(model, data.split("test"), {.compare_examples = 0}, "t.h5"));
}

TEST_CASE("recall score: tokens, examples and distances add up, whatever the batch") {
  const quipu_test::TemporaryFolder folder;
  auto rows = sample_rows(11);
  const auto model = small_model("gsa", kVocab);
  const auto predictions = naive(*model, rows);
  for (const TokenOutcome& o : predictions)  // rows 0 and 4 all right, half of the others
    if (o.row == 0 || o.row == 4 || o.position % 2 == 0)
      rows[static_cast<std::size_t>(o.row)].targets[static_cast<std::size_t>(o.position)] = o.predicted;
  Share tokens, examples;
  std::vector<char> all(rows.size(), 1);
  for (const TokenOutcome& o : predictions) {
    const bool right =
        o.predicted == rows[static_cast<std::size_t>(o.row)].targets[static_cast<std::size_t>(o.position)];
    tokens.add(right);
    if (!right) all[static_cast<std::size_t>(o.row)] = 0;
  }
  for (const char right : all) examples.add(right != 0);
  write_task(folder / "t.h5", rows);
  const Dataset data(folder / "t.h5");
  for (const Index batch : {0, 1, 4, 100}) {
    RecallOptions options{.batch = batch, .chunk_tokens = 50, .compare_examples = 3};
    options.distance = [](std::span<const std::int32_t>, Index, Index position) { return position; };
    const RecallResult result = score_recall(*model, data.split("test"), options, "t.h5");
    CHECK(result.tokens.n == tokens.n);
    CHECK(std::abs(result.tokens.right - tokens.right) <= 1);  // a tie
    CHECK(result.examples.n == 11);
    CHECK(std::abs(result.examples.right - examples.right) <= 1);
    CHECK(examples.right >= 2);
    CHECK(result.longest == kLength);
    CHECK(result.forms.rows == 3);
    Index binned = 0, first = 0;
    for (const auto& [from, share] : result.by_distance) binned += share.n;
    for (const ScoredRow& row : rows) first += row.targets[0] != kNoTarget;
    CHECK(binned == result.tokens.n - first);  // position 0 has no distance
    CHECK(result.by_distance.at(4).n > 0);
  }
  CHECK(score_recall(*model, data.split("test"), {.max_examples = 4}, "t.h5").examples.n == 4);
}

TEST_CASE("recall score: what cannot be scored is one clear line") {
  const quipu_test::TemporaryFolder folder;
  const auto model = small_model("gsa", kVocab);
  auto rows = sample_rows(3);
  write_task(folder / "wide.h5", rows, 20);
  rows[1].targets.assign(kLength, kNoTarget), rows[1].targets[20] = 17;
  write_task(folder / "outside.h5", rows, 20);
  for (ScoredRow& row : rows) row.targets.assign(kLength, kNoTarget);
  write_task(folder / "nothing.h5", rows);
  const Dataset wide(folder / "wide.h5"), outside(folder / "outside.h5"), nothing(folder / "nothing.h5");
  CHECK_THROWS_WITH_AS(score_recall(*model, outside.split("test"), {}, "o.h5"),
                       "o.h5: example 1 has token 17, and the model's vocabulary has 13; use a model of the task's",
                       InputError);
  CHECK_THROWS_WITH_AS(score_recall(*model, nothing.split("test"), {}, "n.h5"),
                       "n.h5: split 'test' has 3 examples, and nothing in them is scored", InputError);
  CHECK_THROWS_WITH_AS(score_recall(*model, wide.split("test"), {.longest = 19}, "w.h5"),
                       "w.h5: example 0 of split 'test' has 21 tokens, and the model can read 19; make shorter ones, "
                       "or train with a larger --seq-len",
                       InputError);
}

TEST_CASE("share: Wilson's interval") {
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-4); };
  CHECK(Share{8, 10}.low() == near(0.490162));  // as in Wilson's tables
  CHECK(Share{8, 10}.high() == near(0.943318));
  CHECK(Share{0, 10}.low() == 0);
  CHECK(Share{0, 10}.high() == near(0.277533));
  CHECK(Share{10, 10}.low() == near(0.722467));
  CHECK(Share{0, 0}.low() == 0);
  CHECK(Share{0, 0}.high() == 1);
}

}  // namespace quipu::inline QUIPU_REAL_NS
