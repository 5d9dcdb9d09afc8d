#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quipu {

/// Hashes words so that a map of strings can be searched by string_view.
struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
};

/// How often each word was seen. With a limit on distinct words, memory is bounded: where the limit is passed, the
/// words seen once are forgotten, then those seen twice, and so on, until half the limit is free. What is kept depends
/// only on the words and their order.
class WordCounts {
 public:
  using Count = std::pair<std::string, std::uint64_t>;

  /// `max_distinct` 0: no limit.
  explicit WordCounts(std::size_t max_distinct = 0) : max_distinct_(max_distinct) {}

  void add(std::string_view word);
  bool empty() const { return counts_.empty(); }

  /// The `n` most frequent words (0: all), most frequent first, equally frequent ones in the order of their bytes.
  std::vector<Count> most_frequent(std::size_t n = 0) const;

 private:
  void forget_rare_words();

  std::size_t max_distinct_;
  std::unordered_map<std::string, std::uint64_t, WordHash, std::equal_to<>> counts_;
};

}  // namespace quipu
