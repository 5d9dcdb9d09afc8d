#include "text/recall_task.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "text/recall_audit.h"
#include "text/recall_examples.h"
#include "text/tokenizer.h"

namespace quipu {
namespace {

struct Examples {
  std::unique_ptr<RecallTask> task;
  std::vector<std::int32_t> inputs, targets;
  Index count;

  Examples(const std::string& name, const TaskValues& values, Index n, const std::string& split = "train",
           std::uint64_t seed = 3, Index first = 0)
      : task(make_recall_task(name, values)), count(n) {
    inputs.resize(static_cast<std::size_t>(n * task->length()));
    targets.resize(inputs.size());
    draw_examples(*task, seed, split, first, inputs, targets);
  }
  std::span<const std::int32_t> row(Index i) const {
    const auto length = static_cast<std::size_t>(task->length());
    return std::span(inputs).subspan(static_cast<std::size_t>(i) * length, length);
  }
  std::span<const std::int32_t> target(Index i) const {
    const auto length = static_cast<std::size_t>(task->length());
    return std::span(targets).subspan(static_cast<std::size_t>(i) * length, length);
  }
};

/// Small tasks of every kind, of several shapes.
const std::vector<std::pair<std::string, TaskValues>> kTasks = {
    {"mqar", {{"vocab", 64}, {"length", 32}, {"pairs", 3}}},
    {"mqar", {{"vocab", 40}, {"length", 37}, {"pairs", 5}, {"queries", 2}, {"filler", 1}, {"power", 1}}},
    {"mqar", {{"vocab", 70000}, {"length", 64}, {"pairs", 16}}},
    {"associative", {}},
    {"associative", {{"pairs", 7}, {"keys", 40}, {"values", 9}}},
    {"induction", {{"length", 31}}},
    {"copy", {{"count", 7}, {"symbols", 5}, {"copies", 3}}},
    {"reverse", {{"count", 9}}},
    {"selective-copy", {{"length", 40}, {"count", 6}}},
    {"sort", {{"count", 11}, {"symbols", 17}}},
    {"parity", {{"length", 33}}},
    {"parity", {{"length", 33}, {"score", 1}}}};

}  // namespace

TEST_CASE("recall tasks: every kind has a sample here, tokens in its vocabulary and a name for each") {
  for (const RecallTaskKind& kind : recall_task_kinds())
    CHECK_MESSAGE(
        (kind.make == nullptr || std::ranges::any_of(kTasks, [&](const auto& t) { return t.first == kind.name; })),
        kind.name);
  for (const auto& [name, values] : kTasks) {
    INFO(name);
    const Examples data(name, values, 50);
    CHECK(data.task->chance() > 0);
    CHECK(data.task->chance() <= 0.65);
    const auto tokenizer = make_tokenizer(data.task->tokenizer());
    CHECK(tokenizer->vocab_size() == data.task->vocab());
    for (const std::int32_t token : data.inputs) CHECK((token >= 0 && token < data.task->vocab()));
    for (const std::int32_t token : data.targets) CHECK((token >= -1 && token < data.task->vocab()));
  }
}

TEST_CASE("recall tasks: an example is a function of the seed, the split and its index alone") {
  for (const auto& [name, values] : kTasks) {
    INFO(name);
    const Examples all(name, values, 40), part(name, values, 7, "train", 3, 20), other(name, values, 40, "train", 4);
    for (Index i = 0; i < part.count; ++i) {
      CHECK(std::ranges::equal(part.row(i), all.row(20 + i)));
      CHECK(std::ranges::equal(part.target(i), all.target(20 + i)));
    }
    CHECK(all.inputs != other.inputs);
  }
}

TEST_CASE("recall tasks: splits share no example, whatever the seed") {
  for (const auto& [name, values] : kTasks) {
    INFO(name);
    std::map<std::vector<std::int32_t>, std::string> seen;
    for (const std::string& split : kTaskSplits)
      for (const std::uint64_t seed : {1U, 2U}) {
        const Examples data(name, values, 60, split, seed);
        for (Index i = 0; i < data.count; ++i) {
          const auto at = seen.emplace(std::vector(data.row(i).begin(), data.row(i).end()), split).first;
          CHECK(at->second == split);
        }
      }
  }
}

TEST_CASE("recall tasks: mqar binds each key once, asks each once, and answers stand behind their keys") {
  for (const auto& [name, values] : kTasks) {
    if (name != "mqar") continue;
    const Examples data(name, values, 100);
    const auto pairs = static_cast<std::size_t>(values.at("pairs"));
    const auto half = static_cast<std::int32_t>(data.task->vocab() / 2);
    const auto queries =
        static_cast<std::size_t>(values.contains("queries") ? values.at("queries") : values.at("pairs"));
    for (Index i = 0; i < data.count; ++i) {
      const auto row = data.row(i), target = data.target(i);
      std::map<std::int32_t, std::int32_t> bound;
      std::set<std::int32_t> distinct_values, asked;
      for (std::size_t p = 0; p < pairs; ++p) {
        CHECK(row[2 * p] >= kFirstSymbol);
        CHECK(row[2 * p] < half);
        CHECK(row[2 * p + 1] >= half);
        bound[row[2 * p]] = row[2 * p + 1];
        distinct_values.insert(row[2 * p + 1]);
      }
      CHECK(bound.size() == pairs);
      CHECK(distinct_values.size() == pairs);
      for (std::size_t t = 0; t < row.size(); ++t) {
        const bool is_key = bound.contains(row[t]);
        if (t >= 2 * pairs) CHECK(is_key == (target[t] != -1));  // filler holds no key
        if (target[t] == -1) continue;
        CHECK(bound.at(row[t]) == target[t]);
        CHECK(asked.insert(row[t]).second);
        CHECK(data.task->source_of(row, static_cast<Index>(t)) % 2 == 1);
        CHECK(row[static_cast<std::size_t>(data.task->source_of(row, static_cast<Index>(t)))] == target[t]);
      }
      CHECK(asked.size() == queries);
    }
  }
}

TEST_CASE("recall tasks: mqar's queries come early by the power law, evenly where the power is 1") {
  const auto mean_place = [](double power) {
    const Examples data("mqar", {{"vocab", 64}, {"length", 128}, {"pairs", 2}, {"power", power}}, 2000);
    double sum = 0, n = 0;
    for (Index i = 0; i < data.count; ++i)
      for (std::size_t t = 0; t < data.target(i).size(); ++t)
        if (data.target(i)[t] != -1) sum += static_cast<double>((t - 4) / 2 + 1), ++n;
    return sum / n;
  };
  CHECK(mean_place(1) == doctest::Approx(31.5).epsilon(0.03));  // 62 places
  // The first of two has the mean of the weights 1/i^0.99, 62 / (sum of them) = 13.0; the second comes a bit later.
  CHECK(mean_place(0.01) == doctest::Approx(14).epsilon(0.12));
}

TEST_CASE("recall tasks: answers are what a reader of the tokens would say") {
  const Examples copy("copy", {{"count", 3}, {"symbols", 4}, {"copies", 2}}, 30);
  const Examples reverse("reverse", {{"count", 4}}, 30), sort("sort", {{"count", 4}, {"symbols", 9}}, 30);
  const Examples select("selective-copy", {{"length", 12}, {"count", 3}}, 30), bits("parity", {{"length", 9}}, 30);
  const Examples induction("induction", {{"length", 12}}, 30), pairs("associative", {{"pairs", 3}}, 30);
  using Tokens = std::vector<std::int32_t>;
  const auto answers = [](std::span<const std::int32_t> targets) {
    Tokens scored;
    std::ranges::copy_if(targets, std::back_inserter(scored), [](std::int32_t t) { return t != -1; });
    return scored;
  };
  for (Index i = 0; i < 30; ++i) {
    const auto c = copy.row(i), r = reverse.row(i), s = sort.row(i), f = select.row(i), b = bits.row(i);
    CHECK(answers(copy.target(i)) == Tokens{c[0], c[1], c[2], c[0], c[1], c[2]});
    CHECK(Tokens(c.begin() + 3, c.end()) == Tokens{kMarkToken, c[0], c[1], c[2], c[0], c[1]});
    CHECK(answers(reverse.target(i)) == Tokens{r[3], r[2], r[1], r[0]});
    Tokens sorted(s.begin(), s.begin() + 4);
    std::ranges::sort(sorted);
    CHECK(answers(sort.target(i)) == sorted);
    Tokens kept;
    std::copy_if(f.begin(), f.end() - 3, std::back_inserter(kept), [](std::int32_t t) { return t != kBlankToken; });
    CHECK(answers(select.target(i)) == kept);
    Tokens parities;
    for (int ones = 0; const std::int32_t bit : b) parities.push_back(kFirstSymbol + (ones += bit - kFirstSymbol) % 2);
    CHECK(answers(bits.target(i)) == parities);
    const auto mark = std::ranges::find(induction.row(i), kMarkToken);
    CHECK(answers(induction.target(i)) == Tokens{*(mark + 1)});
    const auto p = pairs.row(i);
    CHECK(p[7] == kMarkToken);
    const auto key = std::find(p.begin(), p.begin() + 6, p[6]);
    CHECK((key - p.begin()) % 2 == 0);
    CHECK(answers(pairs.target(i)) == Tokens{*(key + 1)});
  }
}

TEST_CASE("recall tasks: the source of an answer holds the answer") {
  for (const auto& [name, values] : kTasks) {
    if (name == "parity") continue;
    INFO(name);
    const Examples data(name, values, 20);
    for (Index i = 0; i < data.count; ++i)
      for (Index t = 0; t < data.task->length(); ++t) {
        const std::int32_t target = data.target(i)[static_cast<std::size_t>(t)];
        if (target == -1) continue;
        const Index source = data.task->source_of(data.row(i), t);
        REQUIRE((source >= 0 && source <= t));
        CHECK(data.row(i)[static_cast<std::size_t>(source)] == target);
      }
  }
}

TEST_CASE("recall tasks: the best guess of a sort is right as often as chance says") {
  const Examples data("sort", {{"count", 5}, {"symbols", 12}}, 4000);
  double right = 0, n = 0;
  for (Index i = 0; i < data.count; ++i)
    for (std::size_t t = 5; t < 10; ++t) {
      const std::int32_t guess = t == 5 ? kFirstSymbol : data.row(i)[t] + 1;
      right += guess == data.target(i)[t] ? 1 : 0, ++n;
    }
  CHECK(right / n == doctest::Approx(data.task->chance()).epsilon(0.03));
}

TEST_CASE("recall audit: what is made is clean, and each planted fault is found") {
  for (const auto& [name, values] : kTasks) {
    INFO(name);
    const Examples train(name, values, 40), test(name, values, 30, "test");
    const auto findings = [&](const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& targets) {
      RecallAudit audit(*train.task);
      audit.add("train", train.inputs, train.targets);
      audit.add("test", inputs, targets);
      return audit.finish();
    };
    const RecallFindings clean = findings(test.inputs, test.targets);
    CHECK(clean.clean());
    CHECK(clean.examples == 70);
    CHECK(clean.text() == "overlap 0, re-binding 0, wrong answers 0");

    auto inputs = test.inputs, targets = test.targets;  // an example of the training split
    std::ranges::copy(train.row(11), inputs.begin());
    std::ranges::copy(train.target(11), targets.begin());
    CHECK(findings(inputs, targets).overlap == 1);

    targets = test.targets;  // another answer
    const auto scored = std::ranges::find_if(targets, [](std::int32_t t) { return t != -1; });
    *scored = *scored == kFirstSymbol ? kFirstSymbol + 1 : kFirstSymbol;
    CHECK(findings(test.inputs, targets).faults.wrong >= 1);
    CHECK(findings(test.inputs, targets).bad_examples == 1);

    targets = test.targets;  // an answer where nothing is asked
    if (const auto unscored = std::ranges::find(targets, -1); unscored != targets.end()) {
      *unscored = kFirstSymbol;
      CHECK(findings(test.inputs, targets).bad_examples == 1);
    }
  }
}

TEST_CASE("recall audit: filler that binds a queried key anew is found") {
  const Examples data("mqar", {{"vocab", 64}, {"length", 40}, {"pairs", 2}}, 20);
  for (Index i = 0; i < data.count; ++i) {
    std::vector<std::int32_t> row(data.row(i).begin(), data.row(i).end());
    std::vector<std::int32_t> targets(data.target(i).begin(), data.target(i).end());
    std::size_t query = row.size() - 1;
    while (targets[query] == -1) --query;
    if (query < 6 || targets[query - 2] != -1) continue;
    row[query - 2] = row[query];  // the key, followed by a blank
    CHECK(data.task->check(row, targets).rebindings == 1);
    CHECK(data.task->check(row, targets).wrong == 0);
  }
}

TEST_CASE("recall tasks: what cannot be is one clear line") {
  const auto making = [](const std::string& name, const TaskValues& values) { make_recall_task(name, values); };
  CHECK_THROWS_WITH_AS(making("mqr", {}),
                       "task 'mqr': is unknown; there are mqar, associative, induction, copy, reverse, "
                       "selective-copy, sort, parity, passkey, needle, babilong",
                       UsageError);
  CHECK_THROWS_WITH_AS(making("reverse", {{"pairs", 3}}),
                       "--pairs: reverse has no such parameter; it has --count, --symbols", UsageError);
  CHECK_THROWS_WITH_AS(making("mqar", {{"pairs", 17}}),
                       "--length 64: 17 pairs and 17 queries take 68 tokens; give more, or fewer --pairs", UsageError);
  CHECK_THROWS_WITH_AS(making("mqar", {{"pairs", 2}, {"queries", 3}}),
                       "--queries 3: there are 2 pairs, and each is queried once at most; give --queries 2 or less",
                       UsageError);
  CHECK_THROWS_WITH_AS(making("mqar", {{"vocab", 11}}),
                       "--pairs 4: a vocabulary of 11 has 3 keys; give a larger --vocab", UsageError);
  CHECK_THROWS_WITH_AS(making("copy", {{"count", 2.5}}), "--count 2.5: is no whole number", UsageError);
  CHECK_THROWS_WITH_AS(making("copy", {{"count", 0}}), "--count 0: is not from 1 to 16777216", UsageError);
  const auto task = make_recall_task("parity", {{"length", 2}});
  std::vector<std::int32_t> inputs(40), targets(40);
  CHECK_THROWS_WITH_AS(draw_examples(*task, 1, "valid", 0, inputs, targets), doctest::Contains("1000 draws"),
                       UsageError);
}

TEST_CASE("recall tasks: parameters are written as words and read back") {
  for (const auto& [name, values] : kTasks) {
    const RecallTaskKind& kind = recall_task_kind(name);
    const TaskValues all = complete_values(kind, values);
    CHECK(parse_values(kind, values_text(kind, all)) == all);
  }
  CHECK(values_text(recall_task_kind("parity"), {{"length", 8}, {"score", 1}}) == "length=8 score=last");
}

}  // namespace quipu
