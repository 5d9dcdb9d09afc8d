#include "text/segmenter.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "text/sample_texts.h"

using namespace quipu;
using Ids = std::vector<std::int32_t>;

namespace {

std::vector<std::string> with_bytes(const std::vector<std::string>& more) {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(), more.begin(), more.end());
  return pieces;
}

const std::vector<std::string> kPieces =
    with_bytes({"ab", "bc", "abc", "ca", "aa", "aaaa", "cab", "bcab", "cc", "abab"});

std::int32_t id_of(std::string_view piece) {
  return static_cast<std::int32_t>(std::find(kPieces.begin(), kPieces.end(), piece) - kPieces.begin());
}

/// BPE as it is told: again and again join the leftmost pair of the lowest id.
Ids naive_bpe(std::string_view word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best = parts.size();
    auto best_id = static_cast<std::int32_t>(kPieces.size());
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (const std::int32_t id = id_of(parts[i] + parts[i + 1]); id < best_id) best = i, best_id = id;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(id_of(part));
  return ids;
}

/// The best sum of scores over every way to cut the word.
double naive_unigram(std::string_view word, const std::vector<float>& scores) {
  if (word.empty()) return 0;
  double best = -1e30;
  for (std::size_t id = 0; id < kPieces.size(); ++id) {
    if (!word.starts_with(kPieces[id])) continue;
    best = std::max(best, static_cast<double>(scores[id]) + naive_unigram(word.substr(kPieces[id].size()), scores));
  }
  return best;
}

std::string small_word(std::uint64_t seed) {
  std::string word = random_bytes(seed, 1 + seed % 12, 3);
  for (char& c : word) c = static_cast<char>('a' + c);
  return word;
}

}  // namespace

TEST_CASE("segmenter: byte-pair encoding joins as the naive form does") {
  const auto segmenter = make_bpe_segmenter(kPieces);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string word = small_word(seed);
    Ids ids{-7};
    segmenter->segment(word, ids);
    CHECK(ids[0] == -7);
    ids.erase(ids.begin());
    CHECK(ids == naive_bpe(word));
  }
}

TEST_CASE("segmenter: the unigram model finds the best of all ways to cut") {
  std::vector<float> scores;
  const Rng rng(3, 0, rng_site("scores"));
  for (std::size_t id = 0; id < kPieces.size(); ++id) {
    scores.push_back(static_cast<float>(-2 - 4 * rng.uniform(id)));
  }
  const auto segmenter = make_unigram_segmenter(kPieces, scores);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string word = small_word(seed);
    Ids ids;
    segmenter->segment(word, ids);
    std::string joined;
    double sum = 0;
    for (const std::int32_t id : ids) {
      joined += kPieces[static_cast<std::size_t>(id)];
      sum += static_cast<double>(scores[static_cast<std::size_t>(id)]);
    }
    CHECK(joined == word);
    CHECK(sum == doctest::Approx(naive_unigram(word, scores)).epsilon(1e-5));
  }
}
