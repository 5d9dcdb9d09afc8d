#include "text/word_counts.h"

#include <algorithm>

namespace quipu {

void WordCounts::add(std::string_view word) {
  if (const auto found = counts_.find(word); found != counts_.end()) {
    ++found->second;
    return;
  }
  if (max_distinct_ != 0 && counts_.size() >= max_distinct_) forget_rare_words();
  counts_.emplace(word, 1);
}

void WordCounts::forget_rare_words() {
  for (std::uint64_t rare = 1; counts_.size() > max_distinct_ / 2; ++rare) {
    std::erase_if(counts_, [rare](const auto& entry) { return entry.second <= rare; });
  }
}

std::vector<WordCounts::Count> WordCounts::most_frequent(std::size_t n) const {
  std::vector<Count> words(counts_.begin(), counts_.end());
  const auto before = [](const Count& a, const Count& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  const std::size_t kept = n == 0 ? words.size() : std::min(n, words.size());
  std::partial_sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(kept), words.end(), before);
  words.resize(kept);
  return words;
}

}  // namespace quipu
