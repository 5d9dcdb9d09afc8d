#include "base/digest.h"

#include <doctest/doctest.h>

#include <set>

using quipu::Digest;
using quipu::Digester;

namespace {

std::string sample(std::size_t n) {
  std::string text(n, '\0');
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * 37 + i / 7);
  return text;
}

Digest digest(std::string_view text) {
  Digester digester;
  digester.update(text);
  return digester.finish();
}

}  // namespace

TEST_CASE("digest: does not depend on how the bytes are cut") {
  const std::string text = sample(201);
  for (std::size_t first = 0; first <= text.size(); first += 3) {
    for (std::size_t second = first; second <= text.size(); second += 17) {
      Digester digester;
      digester.update(std::string_view(text).substr(0, first));
      digester.update(std::string_view(text).substr(first, second - first));
      digester.update(std::string_view(text).substr(second));
      CHECK(digester.finish() == digest(text));
    }
  }
}

TEST_CASE("digest: every flipped bit, length and exchange of words changes it") {
  std::set<std::string> seen;
  std::string text = sample(100);
  seen.insert(digest(text).hex());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    seen.insert(digest(text).hex());
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
  for (std::size_t n = 0; n < 100; ++n) seen.insert(digest(std::string(n, '\0')).hex());
  seen.insert(digest(text.substr(32, 32) + text.substr(0, 32) + text.substr(64)).hex());
  seen.insert(digest(text.substr(8, 8) + text.substr(0, 8) + text.substr(16)).hex());
  CHECK(seen.size() == 1 + 800 + 100 + 2);
}

TEST_CASE("digest: its text can be read back") {
  const Digest value = digest("quipu");
  CHECK(value.hex().size() == 32);
  CHECK(Digest::parse(value.hex()) == value);
  CHECK(Digest::parse(Digest{1, 2}.hex()) == Digest{1, 2});
  CHECK(!Digest::parse("12"));
  std::string text = value.hex();
  text[0] = 'g';
  CHECK(!Digest::parse(text));
  text = value.hex();
  text[31] = '-';
  CHECK(!Digest::parse(text));
}

TEST_CASE("digest: stays the same from version to version") {
  CHECK(digest("").hex() == "87798b3a60e79208056be181d4331d4d");
  CHECK(digest(sample(100)).hex() == "09d31b83860fac367c229112c81b09e7");
}
