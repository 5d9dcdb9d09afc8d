#include "cli/config_file.h"

#include <doctest/doctest.h>

#include "cli/dummy_tool.h"

using namespace quipu;
using dummy::Outcome;
using dummy::run;
using dummy::run_multi;
using dummy::run_plain;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_config(text, "f.toml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

std::vector<std::string> values(const std::string& text) { return parse_config("k = " + text, "f").at(0).values; }

}  // namespace

TEST_CASE("config: entries, sections, comments") {
  const auto entries = parse_config(
      "\xEF\xBB\xBF# a comment\r\nsteps = 1e4 # ten thousand\r\n\nlr=0.1\n[text]\n"
      "output = \"a # b\"\nshow.\"x-y\" = true\n",
      "f");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].key == "steps");
  CHECK(entries[0].values == std::vector<std::string>{"1e4"});
  CHECK(entries[0].line == 2);
  CHECK(entries[0].section.empty());
  CHECK(entries[1].values == std::vector<std::string>{"0.1"});
  CHECK(entries[2].section == std::vector<std::string>{"text"});
  CHECK(entries[2].values == std::vector<std::string>{"a # b"});
  CHECK(entries[3].section == std::vector<std::string>{"text", "show"});
  CHECK(entries[3].key == "x-y");
  CHECK(entries[3].line == 7);
  CHECK(parse_config("", "f").empty());
  CHECK(parse_config("# only", "f").empty());
}

TEST_CASE("config: values") {
  using Texts = std::vector<std::string>;
  CHECK(values("3xgsa,attention") == Texts{"3xgsa,attention"});
  CHECK(values("two words") == Texts{"two words"});
  CHECK(values("a#b") == Texts{"a#b"});
  CHECK(values("\"\"") == Texts{""});
  CHECK(values("'C:\\x'") == Texts{"C:\\x"});
  CHECK(values(R"("a\tb\n\"\\ \u00e9\U0001F600")") == Texts{"a\tb\n\"\\ \xC3\xA9\xF0\x9F\x98\x80"});
  CHECK(values("[]") == Texts{});
  CHECK(values("[1, \"b,]\", 'c' ]") == Texts{"1", "b,]", "c"});
  CHECK(values("[ # first\n  a=1, # one\n  b=2,\n]") == Texts{"a=1", "b=2"});
}

TEST_CASE("config: what it refuses, with the line") {
  CHECK(refusal("steps") == "f.toml:1: \"steps\" is not followed by '='; write key = value or [section]");
  CHECK(refusal("\nsteps =") == "f.toml:2: a value is missing; write key = value (\"\" is the empty text)");
  CHECK(refusal("= 3") == "f.toml:1: a name is missing before \"= 3\"; write key = value");
  CHECK(refusal("a = \"x\" y") == "f.toml:1: \"y\" follows the value; start a new line");
  CHECK(refusal("a = \"x") == "f.toml:1: a string has no end; close it with \"");
  CHECK(refusal("a = [1\nb = 2") == "f.toml:2: the array of line 1 goes on without a comma; write [a, b]");
  CHECK(refusal("a = [1,\n") == "f.toml:2: the array of line 1 has no end; close it with ]");
  CHECK(refusal("a = 1\nb = 2\na = 3") ==
        "f.toml:3: a stands here and in line 1; keep one (several values go into an array)");
  CHECK(refusal("[[a]]") == "f.toml:1: [[arrays of tables]] are not read; write [section]");
  CHECK(refusal("a = {b = 1}") == "f.toml:1: inline tables are not read; write section.key = value");
  CHECK(refusal("a = \"\"\"x\"\"\"") == "f.toml:1: multi-line strings are not read; write \\n in a string");
  CHECK(refusal("a = \"\\q\"") == "f.toml:1: \\q is not an escape; use 'single quotes' for text with backslashes");
  CHECK(refusal("a = \"\\ud800\"") == "f.toml:1: \\u is not an escape; use 'single quotes' for text with backslashes");
}

TEST_CASE("config: every kind of option, and the command line wins") {
  const dummy::Folder folder;
  const std::string file = folder.write(
      "run.toml",
      "steps = 5k\nlr = 0.25\nschedule = \"linear\"\nset = [\"a=1\", \"b=[2,3]\"]\ndry-run = true\nquiet = false\n"
      "seed = 9\noutput = from_file\nstop = \"#\"\ntime-limit = 45m\n");
  const Outcome outcome = run(run_plain, {"d.h5", "--config", file, "--seed", "3", "--output", "typed"});
  CHECK(outcome.err == "");
  REQUIRE(outcome.status == 0);
  const Json json = outcome.json();
  CHECK(json["steps"] == 5000);
  CHECK(json["lr"] == 0.25);
  CHECK(json["schedule"] == "linear");
  CHECK(json["set"] == Json({"a=1", "b=[2,3]"}));
  CHECK(json["dry_run"] == true);
  CHECK(json["seed"] == 3);
  CHECK(json["output"] == "typed");
  CHECK(json["stop"] == "#");
  CHECK(json["time_limit_s"] == 2700);
}

TEST_CASE("config: errors name the file, the line and the key") {
  const dummy::Folder folder;
  const auto check = [&](const std::string& text, const std::string& message) {
    INFO(text);
    const std::string file = folder.write("run.toml", text);
    const Outcome outcome = run(run_plain, {"d.h5", "--config", file});
    CHECK(outcome.status == 2);
    CHECK(outcome.err == "plain: " + file + message + "\n");
  };
  check("\nstepz = 3", ":2: unknown key stepz; did you mean steps?");
  check("zzzzzzzz = 3", ":1: unknown key zzzzzzzz; a key is a long option without its dashes");
  check("help = true", ":1: unknown key help; a key is a long option without its dashes");
  check("dump-man = true", ":1: unknown key dump-man; a key is a long option without its dashes");
  check("config = \"x\"", ":1: unknown key config; a key is a long option without its dashes");
  check("steps = -5", ":1: --steps: -5 is below 1; give 1 or more");
  check("steps = [1, 2]", ":1: steps takes one value, not an array; write it without [ ]");
  check("dry-run = 7", ":1: --dry-run: \"7\" is neither true nor false; give true or false");
  check("[text]\nsteps = 3", ":2: unknown section [text]; it must be a command of plain");
  const Outcome missing = run(run_plain, {"d.h5", "--config", "/nonexistent.toml"});
  CHECK(missing.status == 2);
  CHECK(missing.err == "plain: --config: /nonexistent.toml: cannot be read; give a text file\n");
  CHECK(run(run_plain, {"d.h5", "--config", folder.path.string()}).status == 2);
}

TEST_CASE("config: sections are commands") {
  const dummy::Folder folder;
  const std::string file = folder.write("run.toml", "seed = 4\ntokenizer = words\n[text]\noutput = \"o.h5\"\n[show]\n");
  Outcome outcome = run(run_multi, {"text", "a", "--config", file});
  CHECK(outcome.err == "");
  REQUIRE(outcome.status == 0);
  CHECK(outcome.json()["output"] == "o.h5");
  CHECK(outcome.json()["tokenizer"] == "words");
  CHECK(outcome.json()["seed"] == 4);
  outcome = run(run_multi, {"show", "a", "--config", folder.write("b.toml", "text.output = x\n")});
  CHECK(outcome.status == 0);
  CHECK(outcome.json()["command"] == "show");
  outcome = run(run_multi, {"show", "a", "--config", folder.write("c.toml", "text.outpu = x\n")});
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("c.toml:1: unknown key outpu; did you mean output?") != std::string::npos);
}
