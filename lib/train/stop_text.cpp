#include "train/stop_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quipu {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    if (stop.empty()) throw UsageError("--stop: is empty; give the text to stop at");
}

std::string StopText::push(std::string_view bytes) {
  if (found_) return {};
  const std::size_t old = held_.size();
  held_ += bytes;
  for (std::size_t end = old + 1; end <= held_.size(); ++end) {
    const std::string_view seen(held_.data(), end);
    std::size_t longest = 0;
    for (const std::string& stop : stops_)
      if (seen.ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest == 0) continue;
    found_ = true;
    held_.resize(end - longest);
    return std::exchange(held_, {});
  }
  std::size_t open = 0;  // bytes at the end that begin a string
  for (const std::string& stop : stops_)
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > open; --n)
      if (held_.ends_with(std::string_view(stop).substr(0, n))) open = n;
  std::string shown = held_.substr(0, held_.size() - open);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopText::flush() { return std::exchange(held_, {}); }

}  // namespace quipu
