#include "train/stop_text.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace quipu;

namespace {

/// What is shown when `text` comes in pieces of `size` bytes, and " |" where a string was found.
std::string shown(const std::vector<std::string>& stops, const std::string& text, std::size_t size) {
  StopText stop(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) out += stop.push(text.substr(at, size));
  return out + stop.flush() + (stop.found() ? " |" : "");
}

}  // namespace

TEST_CASE("stop text: is found across pieces and not shown") {
  for (const std::size_t size : {1, 2, 3, 5, 100}) {
    CAPTURE(size);
    CHECK(shown({"END"}, "one ENEND two", size) == "one EN |");
    CHECK(shown({"END"}, "END", size) == " |");
    CHECK(shown({"END"}, "one EN", size) == "one EN");
    CHECK(shown({"aab"}, "aaaab", size) == "aa |");
    CHECK(shown({"\n\n", "."}, "a\nb.c", size) == "a\nb |");
    CHECK(shown({"abc", "b"}, "xabc", size) == "xa |");  // b ends first
    CHECK(shown({"c", "abc"}, "xabc", size) == "x |");   // both end there: the longer
    CHECK(shown({"\xe2\x82\xac"}, "5 \xe2\x82\xac", size) == "5  |");
    CHECK(shown({}, "all of it", size) == "all of it");
  }
}

TEST_CASE("stop text: only what may begin a string is held back") {
  StopText stop({"END", "Eve"});
  CHECK(stop.push("the E") == "the ");
  CHECK(stop.push("v") == "");
  CHECK(stop.push("il") == "Evil");
  CHECK_FALSE(stop.found());
  CHECK(stop.push("..END..") == "..");
  CHECK(stop.found());
  CHECK(stop.push("more") == "");
  CHECK(stop.flush() == "");
}

TEST_CASE("stop text: an empty string is refused") { CHECK_THROWS_AS(StopText({"a", ""}), UsageError); }
