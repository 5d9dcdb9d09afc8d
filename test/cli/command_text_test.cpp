#include "cli/command_text.h"

#include <doctest/doctest.h>

using namespace quipu;
using Texts = std::vector<std::string>;

TEST_CASE("command text: paragraphs and lines") {
  CHECK(paragraphs("a\nb\n\n  c\nd") == Texts{"a b", "", "  c", "d"});
  CHECK(paragraphs("") == Texts{});
  CHECK(wrap("one two three", 7) == Texts{"one two", "three"});
  CHECK(wrap("one two", 3) == Texts{"one", "two"});
  CHECK(wrap("extraordinary a", 5) == Texts{"extraordinary", "a"});
  CHECK(wrap("a\n\n  b c", 80) == Texts{"a", "", "  b c"});
}

TEST_CASE("command text: a slip of the hand finds its word") {
  const Texts known = {"--steps", "--stop", "--seed", "--min-lr"};
  CHECK(nearest("--step", known) == "--steps");
  CHECK(nearest("--stpes", known) == "--steps");
  CHECK(nearest("--min_lr", known) == "--min-lr");
  CHECK(nearest("--temperature", known) == "");
  CHECK(nearest("x", {}) == "");
}

TEST_CASE("command text: capitals in a metavar stand for a value") {
  OptionText option;
  option.metavar = "auto|never|FILE";
  CHECK(option.choices() == Texts{"auto", "never"});
  CHECK(option.takes_free_value());
  option.metavar = "adamw|nag";
  CHECK(option.choices() == Texts{"adamw", "nag"});
  CHECK_FALSE(option.takes_free_value());
  option.metavar = "FILE";
  CHECK(option.choices().empty());
  CHECK(option.takes_free_value());
}
