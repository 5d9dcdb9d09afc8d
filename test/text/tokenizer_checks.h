#pragma once
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "text/sample_texts.h"
#include "text/tokenizer.h"

namespace quipu {

/// Encodes in blocks of 1 to `most` random bytes, each after what was left of the one before.
inline std::vector<std::int32_t> encode_streamed(const Tokenizer& tokenizer, std::string_view text, std::size_t most,
                                                 std::uint64_t seed) {
  const Rng rng(seed, 3, rng_site("encode_streamed"));
  std::vector<std::int32_t> tokens;
  std::string open;
  bool begins = true;
  std::size_t at = 0;
  for (std::uint64_t draw = 0; at < text.size(); ++draw) {
    const std::size_t size = std::min(text.size() - at, 1 + rng.below(draw, most));
    open += text.substr(at, size);
    at += size;
    const std::size_t taken = tokenizer.encode_some(open, {begins, at == text.size()}, tokens);
    REQUIRE(taken <= open.size());
    begins = begins && taken == 0;
    open.erase(0, taken);
  }
  REQUIRE(open.empty());
  return tokens;
}

/// Streams, cuts and rebuilds: all must give the tokens of the whole. `cuts`: how many places of cut_after are tried.
inline void check_streaming(const Tokenizer& tokenizer, const std::string& text, std::uint64_t seed, int cuts) {
  const std::vector<std::int32_t> whole = tokenizer.encode(text);
  for (const std::int32_t id : whole) REQUIRE((id >= 0 && id < tokenizer.vocab_size()));
  for (const std::size_t most : {1, 3, 40}) {
    if (encode_streamed(tokenizer, text, most, seed) != whole) FAIL("streamed by " << most << ": " << text);
  }
  const Rng rng(seed, 4, rng_site("check_streaming"));
  for (int i = 0; i < cuts && text.size() > 1; ++i) {
    const std::size_t from = 1 + rng.below(static_cast<std::uint64_t>(i), text.size() - 1);
    const std::size_t cut = tokenizer.cut_after(text, from);
    REQUIRE((cut >= from && cut <= text.size()));
    std::vector<std::int32_t> parts;
    tokenizer.encode_some(std::string_view(text).substr(0, cut), {true, true}, parts);
    tokenizer.encode_some(std::string_view(text).substr(cut), {false, true}, parts);
    if (parts != whole) FAIL("cut at " << cut << ": " << text);
  }
}

/// A text that mixes prose, runs of blanks, marks that combine, other alphabets and bytes that are no UTF-8.
inline std::string mixed_text(std::uint64_t seed, bool broken) {
  const Rng rng(seed, 5, rng_site("mixed_text"));
  static const std::vector<std::string> kParts = {" the",
                                                  "and",
                                                  " ",
                                                  "  ",
                                                  "\n",
                                                  "\n\n ",
                                                  "\t",
                                                  "'s",
                                                  "don't",
                                                  "12",
                                                  "345",
                                                  "!?",
                                                  "...",
                                                  "<|endoftext|>",
                                                  "e\u0301",
                                                  "\u00e9",
                                                  "q\u0303\u0323",
                                                  "\uac00\u11a8",
                                                  "\u65e5\u672c",
                                                  "\u2581",
                                                  "\u3000",
                                                  "\u00a0",
                                                  "a",
                                                  "er",
                                                  "king",
                                                  " in",
                                                  "<s>",
                                                  "</s>",
                                                  "\ufb01",
                                                  "\u1100\u1161",
                                                  "\u0f73",
                                                  "        "};
  std::string text;
  const std::uint64_t count = 1 + rng.below(0, 40);
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::uint64_t what = rng.below(3 * i, 12);
    if (what == 0) text += random_unicode(seed * 100 + i, 1 + rng.below(3 * i + 1, 4));
    if (what == 1 && broken) text += random_bytes(seed * 100 + i, 1 + rng.below(3 * i + 1, 4));
    if (what > 1) text += kParts[rng.below(3 * i + 2, kParts.size())];
  }
  return text;
}

}  // namespace quipu
