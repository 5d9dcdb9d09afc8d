#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// Ends a stream of text at the first of a few strings. Text comes in pieces of any size, cut anywhere; what may yet
/// turn out to begin one of the strings is held back. Of strings that end at the same byte the longest counts.
class StopText {
 public:
  /// Throws UsageError for an empty string.
  explicit StopText(std::vector<std::string> stops);

  /// Takes `bytes` and returns what can be shown now: everything before the string once it is found, and nothing after.
  std::string push(std::string_view bytes);
  bool found() const { return found_; }
  /// What was held back, where no more is to come.
  std::string flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace quipu
