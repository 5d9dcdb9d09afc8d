#include "text/recall_lines.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <fstream>

#include "base/error.h"
#include "base/rng.h"
#include "base/temporary_folder.h"
#include "text/answer_match.h"
#include "text/text_reader.h"

namespace quipu {
namespace {

RecallLines read(const std::string& path) {
  TextReader reader(path);
  return read_recall_lines(reader);
}

RecallLine parse(std::string_view json) {
  LineKind kind{};
  return parse_recall_line(json, "f.jsonl: line 7", kind);
}

const std::string kChoice = R"({"id": 3, "question": "Why?", "choices": ["so", "no", "café"], "label": 2})";
const std::string kAnswer = R"({"context": "It is 7.", "question": "What?", "answers": ["7", "seven"]})";

}  // namespace

TEST_CASE("recall lines: the three kinds, plain and gzip, with empty lines and none at the end") {
  const quipu_test::TemporaryFolder folder;
  const std::string text = kChoice + "\n\n" + kChoice + "\r\n  \n" + kChoice;
  std::ofstream(folder / "c.jsonl") << text;
  gzFile zipped = gzopen((folder / "c.jsonl.gz").c_str(), "wb");
  gzwrite(zipped, text.data(), static_cast<unsigned>(text.size()));
  gzclose(zipped);
  const RecallLines lines = read(folder / "c.jsonl"), same = read(folder / "c.jsonl.gz");
  CHECK(lines.kind == LineKind::choices);
  REQUIRE(lines.lines.size() == 3);
  CHECK(lines.lines[2].line == 5);
  CHECK(lines.lines[1].choices == std::vector<std::string>{"so", "no", "café"});
  CHECK(lines.lines[1].label == 2);
  CHECK(same.lines.size() == 3);
  CHECK(same.digest == lines.digest);

  const RecallLine answer = parse(kAnswer);
  CHECK(answer.answers == std::vector<std::string>{"7", "seven"});
  CHECK(fill_template("{context}\nQ: {question} {x}\nA:", answer) == "It is 7.\nQ: What? {x}\nA:");
  CHECK(parse(R"({"question": "q", "answer": "one"})").answers == std::vector<std::string>{"one"});
  CHECK(parse(R"({"text": "the last word \n"})").text == "the last word");
}

TEST_CASE("recall lines: a blank to be filled in, where all have one") {
  RecallLines lines;
  lines.lines.resize(2);
  lines.lines[0].question = "He saw _ there.";
  lines.lines[1].question = "_ saw her.";
  CHECK(have_blanks(lines));
  for (const char* other : {"", "no blank", "two _ of _ them", "at the end _"}) {
    lines.lines[1].question = other;
    CHECK(!have_blanks(lines));
  }
}

TEST_CASE("recall lines: what is wrong with a line is said with its number") {
  const auto said = [](const std::string& json) {
    try {
      parse(json);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(said("{\"question\": ") == "f.jsonl: line 7: is no JSON at byte 14 of it; mend the line");
  CHECK(said("[1]") == "f.jsonl: line 7: is no object of JSON; mend the line");
  CHECK(said("{}") == "f.jsonl: line 7: has neither 'choices' nor 'answers' nor 'text'; it is no question");
  CHECK(said(R"({"choices": ["a", "b"], "label": 0})") == "f.jsonl: line 7: has no 'question'; mend the line");
  CHECK(said(R"({"question": 3, "choices": ["a", "b"], "label": 0})") ==
        "f.jsonl: line 7: its 'question' is no text; mend the line");
  CHECK(said(R"({"question": "", "choices": ["a"], "label": 0})") ==
        "f.jsonl: line 7: has 1 choices; there must be 2 or more");
  CHECK(said(R"({"question": "", "choices": ["a", ""], "label": 0})") ==
        "f.jsonl: line 7: one of its choices is empty; mend the line");
  CHECK(said(R"({"question": "", "choices": ["a", 2], "label": 0})") ==
        "f.jsonl: line 7: its 'choices' is no list of texts; mend the line");
  CHECK(said(R"({"question": "", "choices": ["a", "b"], "label": 2})") ==
        "f.jsonl: line 7: its label is 2, and there are 2 choices, counted from 0; mend the line");
  CHECK(said(R"({"question": "", "choices": ["a", "b"], "label": "A"})") ==
        "f.jsonl: line 7: has no whole number as its 'label'; mend the line");
  CHECK(said(R"({"question": "", "answers": []})") == "f.jsonl: line 7: has no answer; mend the line");
  CHECK(said(R"({"question": "", "answers": ["x", " "]})") ==
        "f.jsonl: line 7: one of its answers is empty; mend the line");
  CHECK(said(R"({"text": "word "})") == "f.jsonl: line 7: its text has no word before the last one; mend the line");
  CHECK(said("{\"text\": \"a \xff\"}").starts_with("f.jsonl: line 7: is no JSON at byte"));

  const quipu_test::TemporaryFolder folder;
  std::ofstream(folder / "mixed.jsonl") << kChoice << "\n\n" << kAnswer << "\n";
  CHECK_THROWS_WITH_AS(read(folder / "mixed.jsonl"),
                       doctest::Contains("mixed.jsonl: line 3: has 'answers', and the lines"), InputError);
  std::ofstream(folder / "blank.jsonl") << "\n \n";
  CHECK_THROWS_WITH_AS(read(folder / "blank.jsonl"), doctest::Contains("holds no line with a question"), InputError);
}

TEST_CASE("recall lines: damaged lines are refused or read, and nothing else happens") {
  Index refused = 0;
  for (std::uint64_t round = 0; round < 4000; ++round) {
    const Rng rng(round, 0, rng_site("damage"));
    std::string json = round % 2 == 0 ? kChoice : kAnswer;
    for (std::uint64_t i = 0; i < 1 + round % 4; ++i) {
      const std::size_t at = rng.below(3 * i, json.size());
      const char other = static_cast<char>(rng.below(3 * i + 1, 256));
      switch (rng.below(3 * i + 2, 4)) {
        case 0:
          json[at] = other;
          break;
        case 1:
          json.erase(at, 1);
          break;
        case 2:
          json.insert(at, 1, other);
          break;
        default:
          json.resize(at + 1);
      }
    }
    try {
      parse(json);
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).starts_with("f.jsonl: line 7: "));
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK_THROWS_AS(parse(std::string(200000, '[')), InputError);  // deep, but no deep recursion
}

TEST_CASE("answers: contains, exact match and F1, with blanks as they stand and squeezed") {
  const std::vector<std::string> answers{"the  Great Wall", "Wall of China"};
  CHECK(contains_answer("It is The\nGREAT  wall, I think.", answers, true));
  CHECK(!contains_answer("It is The\nGREAT  wall, I think.", answers, false));
  CHECK(contains_answer("the wall of china", answers, false));
  CHECK(!contains_answer("the wall", answers, true));
  CHECK(normalize_answer(" The cat's, an A-B. ") == "cats ab");
  CHECK(exact_match(" great wall!", answers, true));
  CHECK(!exact_match(" great wall!", answers, false));
  CHECK(exact_match(" Wall of China\n", answers, false));
  CHECK(answer_f1("wall of", answers) == doctest::Approx(2.0 * 2 / (2 + 3)));
  CHECK(answer_f1("a wall wall", {"wall"}) == doctest::Approx(2.0 * 1 / 3));
  CHECK(answer_f1("nothing", answers) == 0);
  CHECK(answer_f1("the", {"a"}) == 1);  // nothing is left of either
}

}  // namespace quipu
