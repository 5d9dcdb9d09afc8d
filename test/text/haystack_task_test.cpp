#include "text/haystack_task.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "text/byte_tokenizer.h"
#include "text/recall_audit.h"
#include "text/recall_examples.h"
#include "text/word_tokenizer.h"

namespace quipu {
namespace {

const char* const kBabi =
    "1 Mary went to the kitchen.\n2 John went to the garden.\n3 Where is Mary? \tkitchen\t1\n"
    "4 Mary went to the garden.\n5 Where is Mary?\tgarden\t4\n1 Ann is here.\n2 Where is Ann?\there\t1\n";

std::string filler() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "This is sentence " + std::to_string(i * i) + " of a book. ";
  return text;
}

HaystackInputs inputs_of(const std::string& kind) {
  HaystackInputs inputs = standard_inputs(kind);
  inputs.tokenizer = std::make_shared<ByteTokenizer>();
  if (inputs.filler.empty()) inputs.filler = filler();
  if (kind == "babilong") inputs.stories = parse_babi(kBabi, "b.txt");
  return inputs;
}

struct Made {
  std::vector<std::int32_t> inputs, targets;
  Made(const RecallTask& task, Index n, const std::string& split = "train") {
    inputs.resize(static_cast<std::size_t>(n * task.length()));
    targets.resize(inputs.size());
    draw_examples(task, 5, split, 0, inputs, targets);
  }
};

std::string text_of(std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens)
    if (token >= 0) text += static_cast<char>(token);
  return text;
}

}  // namespace

TEST_CASE("babi: stories with the facts that stand before each question") {
  const auto questions = parse_babi(kBabi, "b.txt");
  REQUIRE(questions.size() == 3);
  CHECK(questions[0].facts == std::vector<std::string>{"Mary went to the kitchen.", "John went to the garden."});
  CHECK(questions[0].question == "Where is Mary?");
  CHECK(questions[1].facts.size() == 3);
  CHECK(questions[1].answer == "garden");
  CHECK(questions[2].facts == std::vector<std::string>{"Ann is here."});
  CHECK(parse_babi(std::string("\xEF\xBB\xBF") + kBabi, "b.txt").size() == 3);
  CHECK_THROWS_WITH_AS(parse_babi("1 A.\n3 B.\n", "b.txt"),
                       "b.txt: line 2: does not begin with 2 or 1 and a blank, as bAbI's lines do", InputError);
  CHECK_THROWS_WITH_AS(parse_babi("A.\n", "b.txt"),
                       "b.txt: line 1: does not begin with 1 and a blank, as bAbI's lines do", InputError);
  CHECK_THROWS_WITH_AS(parse_babi("1 A.\nx\n", "b.txt"), doctest::Contains("line 2: does not begin"), InputError);
  CHECK_THROWS_WITH_AS(parse_babi("1 Q?\tyes\t1\n", "b.txt"), doctest::Contains("line 1: its question has no answer"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_babi("1 A.\n", "b.txt"), "b.txt: has no question in bAbI's format", InputError);
}

TEST_CASE("passkey and needle: the number stands where it should, once, and is what is scored") {
  for (const std::string kind : {"passkey", "needle"})
    for (const double depth : {0.0, 0.5, 1.0}) {
      INFO(kind << " at " << depth);
      const auto task = make_haystack_task(kind, {{"length", 400}, {"depth", depth}, {"digits", 6}}, inputs_of(kind));
      const Made made(*task, 20);
      for (std::size_t i = 0; i < 20; ++i) {
        const auto row = std::span(made.inputs).subspan(i * 400, 400),
                   target = std::span(made.targets).subspan(i * 400, 400);
        const std::string text = text_of(row), answer = text_of(target);
        REQUIRE(answer.size() == 7);
        CHECK(answer[0] == ' ');
        const std::string needle = kind == "passkey" ? "The pass key is " + answer.substr(1) + ". Remember"
                                                     : "The number of the locker is " + answer.substr(1) + ".";
        const std::size_t at = text.find(needle);
        REQUIRE(at != text.npos);
        CHECK(std::abs(static_cast<double>(at) / 300 - depth) < 0.25);
        const bool at_sentence_end = at < 2 || text[at - 2] == '.' || text[at - 2] == ' ' || depth == 1.0;
        CHECK(at_sentence_end);
        CHECK(text.ends_with("is " + answer.substr(1, 5)));  // the last digit is only predicted
        CHECK(target.back() == static_cast<unsigned char>(answer.back()));
        const Index source = task->source_of(row, 394);
        CHECK(text.substr(static_cast<std::size_t>(source), 6) == answer.substr(1));
      }
    }
}

TEST_CASE("tasks in a text: the audit is clean, finds planted faults, and splits are apart") {
  for (const std::string kind : {"passkey", "needle", "babilong"}) {
    INFO(kind);
    TaskValues values{{"length", 300}};
    if (kind != "babilong") values["digits"] = 4;
    HaystackInputs inputs = inputs_of(kind);
    if (kind == "babilong")
      for (int i = 0; i < 40; ++i)
        inputs.stories.push_back({{"Ann is at " + std::to_string(i) + "."}, "Where is Ann?", std::to_string(i)});
    const auto task = make_haystack_task(kind, values, inputs);
    const Made train(*task, 30), test(*task, 30, "test");
    RecallAudit audit(*task);
    audit.add("train", train.inputs, train.targets);
    audit.add("test", test.inputs, test.targets);
    const RecallFindings found = audit.finish();
    CHECK(found.clean());
    CHECK(found.text() == "overlap 0, re-binding 0, wrong answers 0");

    std::vector<std::int32_t> targets(test.targets.begin(), test.targets.begin() + 300);
    const auto row = std::span(test.inputs).first(300);
    CHECK(task->check(row, targets).wrong == 0);
    targets.back() = targets.back() == '1' ? '2' : '1';
    CHECK(task->check(row, targets).wrong == 1);
  }
}

TEST_CASE("babilong: facts stand in their order, and a story is in one split") {
  const auto task = make_haystack_task("babilong", {{"length", 250}}, inputs_of("babilong"));
  const Made made(*task, 40);
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string text = text_of(std::span(made.inputs).subspan(i * 250, 250));
    const std::string answer = text_of(std::span(made.targets).subspan(i * 250, 250));
    const std::size_t first = text.find(" Mary went to the kitchen. "),
                      second = text.find(" John went to the garden. "), third = text.find(" Mary went to the garden. ");
    if (text.find("Where is Ann?") != text.npos) {
      CHECK(answer == " here");
      continue;
    }
    CHECK(first < second);
    CHECK(answer == (third == text.npos ? " kitchen" : " garden"));
    if (third != text.npos) CHECK(second < third);
  }
}

TEST_CASE("babilong: where only one split is wanted, it has all stories") {
  HaystackInputs inputs = inputs_of("babilong");
  inputs.split_stories = false;
  const auto task = make_haystack_task("babilong", {{"length", 250}}, inputs);
  for (const std::string split : {"train", "test"}) {
    const std::string text = text_of(Made(*task, 60, split).targets);
    for (const char* answer : {" kitchen", " garden", " here"}) CHECK(text.find(answer) != text.npos);
  }
}

TEST_CASE("tasks in a text: what cannot be is one clear line") {
  CHECK_THROWS_WITH_AS(make_haystack_task("passkey", {{"length", 60}, {"digits", 5}}, inputs_of("passkey")),
                       doctest::Contains("--length 60: needle, question and answer take 10"), UsageError);
  CHECK_THROWS_WITH_AS(make_haystack_task("babilong", {{"length", 20}}, inputs_of("babilong")),
                       "--length 20: the shortest story takes 51 tokens; give more", UsageError);
  HaystackInputs words = inputs_of("needle");
  words.tokenizer = std::make_shared<WordTokenizer>(std::vector<std::string>{"a", "b"});
  CHECK_THROWS_WITH_AS(make_haystack_task("needle", {{"length", 60}, {"digits", 5}}, words),
                       doctest::Contains("cannot write the needle"), UsageError);
  HaystackInputs none = inputs_of("needle");
  none.filler.clear();
  CHECK_THROWS_WITH_AS(make_haystack_task("needle", {{"length", 200}, {"digits", 5}}, none),
                       doctest::Contains("--text: there is no text"), UsageError);
}

}  // namespace quipu
