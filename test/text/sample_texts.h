#pragma once
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "text/tokenizer_trainer.h"

namespace quipu {

/// Some 20 kB of sentences with a small vocabulary of words, numbers and punctuation; the same for the same seed.
inline std::string sample_prose(std::uint64_t seed = 1, std::size_t words = 4000) {
  static const std::vector<std::string> kStems = {"king", "quipu", "don't", "knot", "cord",   "thou",  "über", "reckon",
                                                  "of",   "the",   "and",   "in",   "counts", "night", "日本", "sea"};
  static const std::vector<std::string> kEnds = {"", "s", "ed", "ing", "er", "", "", ","};
  const Rng rng(seed, 0, rng_site("sample_prose"));
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    const auto draw = [&](std::uint64_t part, std::size_t n) { return rng.below(4 * i + part, n); };
    text += kStems[draw(0, kStems.size())] + kEnds[draw(1, kEnds.size())];
    const std::uint64_t after = draw(2, 20);
    text += after == 0 ? ".\n" : after == 1 ? "\r\n\n" : after == 2 ? " 1834 " : after == 3 ? "; " : " ";
  }
  return text;
}

inline std::string random_bytes(std::uint64_t seed, std::size_t size, unsigned alphabet = 256) {
  const Rng rng(seed, 1, rng_site("random_bytes"));
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(rng.below(i, alphabet));
  return bytes;
}

/// Random characters of all of Unicode, as UTF-8.
inline std::string random_unicode(std::uint64_t seed, std::size_t characters) {
  const Rng rng(seed, 2, rng_site("random_unicode"));
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const std::uint64_t top = rng.below(2 * i, 4);
    auto c = static_cast<std::uint32_t>(rng.below(2 * i + 1, top == 0 ? 0x80 : top == 1 ? 0x3100 : 0x10f800));
    if (c >= 0xd800) c += 0x800;
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xc0 | c >> 6), tail(0);
    } else if (c < 0x10000) {
      text += static_cast<char>(0xe0 | c >> 12), tail(6), tail(0);
    } else {
      text += static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0);
    }
  }
  return text;
}

inline std::unique_ptr<Tokenizer> trained(std::string_view spec, std::string_view text) {
  const auto trainer = make_trainer(parse_tokenizer_spec(spec));
  trainer->text(text);
  trainer->end_document();
  return trainer->finish();
}

/// The folder of real texts, or an empty path where there is none.
inline std::filesystem::path real_data() {
  const char* given = std::getenv("QUIPU_REAL_DATA");
  const std::filesystem::path beside = std::filesystem::path(QUIPU_SOURCE_DIR) / ".." / "shared" / "real";
  const std::filesystem::path folder = given != nullptr ? std::filesystem::path(given) : beside;
  return std::filesystem::is_directory(folder) ? folder : std::filesystem::path();
}

}  // namespace quipu
