#include "text/charsmap.h"

#include <utility>

#include "base/error.h"
#include "text/tokenizer_blobs.h"

namespace quipu {

namespace {

constexpr std::size_t kMaxReplacement = 1024;

constexpr std::uint32_t label(std::uint32_t unit) { return unit & ((1U << 31) | 0xff); }
constexpr bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr std::uint32_t value(std::uint32_t unit) { return unit & ((1U << 31) - 1); }
constexpr std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & (1U << 9)) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  if (blob.empty()) return;
  const std::size_t size = blob.size() < 4 ? 0 : read_u32(blob, 0);
  if (blob.size() < 4 || size > blob.size() - 4 || size % 4 != 0 || size == 0) {
    throw InputError("normalization rules: a table of {} bytes in {} bytes; get the file again", size, blob.size());
  }
  units_.resize(size / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = read_u32(blob.substr(4), i);
  replacements_ = blob.substr(4 + size);
  std::size_t begin = 0;
  while (begin < replacements_.size()) {
    const std::size_t end = replacements_.find('\0', begin);
    if (end == std::string::npos || end - begin > kMaxReplacement) {
      throw InputError("normalization rules: a replacement at byte {} has no end within {} bytes; get the file again",
                       begin, kMaxReplacement);
    }
    begin = end + 1;
  }
  explore();
}

std::uint32_t Charsmap::base(std::uint32_t unit, std::uint32_t position) const { return position ^ offset(unit); }

std::string_view Charsmap::replacement(std::uint32_t at) const { return std::string_view(replacements_.data() + at); }

/// Visits every node: checks what the search relies on, and sees what letters and blanks the rules touch.
void Charsmap::explore() {
  std::vector<bool> seen(units_.size());
  std::vector<std::pair<std::uint32_t, bool>> open = {
      {base(units_[0], 0), true}};  // where children are; is it the root
  while (!open.empty()) {
    const auto [children, is_root] = open.back();
    open.pop_back();
    for (std::uint32_t byte = 1; byte < 256; ++byte) {
      const std::uint32_t at = children ^ byte;
      if (at >= units_.size() || label(units_[at]) != byte) continue;
      const std::uint32_t below = base(units_[at], at);
      if (is_root) begins_[byte] = true;
      if (!is_root || has_leaf(units_[at])) keeps_[byte] = false;
      const std::uint32_t blank = below ^ ' ';
      if (blank < units_.size() && label(units_[blank]) == ' ') keeps_[byte] = false;
      if (has_leaf(units_[at]) && (below >= units_.size() || value(units_[below]) >= replacements_.size())) {
        throw InputError("normalization rules: node {} leads outside its {} nodes and {} bytes; get the file again", at,
                         units_.size(), replacements_.size());
      }
      if (seen[at]) continue;
      seen[at] = true;
      open.emplace_back(below, false);
    }
  }
}

Charsmap::Rule Charsmap::find(std::string_view text) const {
  Rule rule;
  if (text.empty() || !begins_[static_cast<unsigned char>(text[0])]) return rule;
  std::uint32_t at = base(units_[0], 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label(units_[at]) != byte) return rule;
    const std::uint32_t unit = units_[at];
    at = base(unit, at);
    if (has_leaf(unit)) {
      rule.length = i + 1;
      rule.replacement = replacement(value(units_[at]));
    }
  }
  rule.undecided = true;
  return rule;
}

}  // namespace quipu
