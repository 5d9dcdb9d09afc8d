#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// A normalization form of Unicode, or text as it is.
enum class UnicodeForm { kNone, kNfc, kNfd, kNfkc, kNfkd };

/// `NFC`, `NFD`, `NFKC`, `NFKD`, and "" for kNone; nothing for other names.
std::optional<UnicodeForm> unicode_form(std::string_view name);
std::string_view name_of(UnicodeForm form);

/// Text in a form, and how its places answer those of the original.
class NormalizedText {
 public:
  /// Of well-formed UTF-8, which must outlive this. Where it is `open`, more may follow, and only what that cannot
  /// change is taken.
  NormalizedText(std::string_view original, UnicodeForm form, bool open);

  std::string_view text() const { return changes_.empty() ? original_.substr(0, taken_) : std::string_view(text_); }
  /// Bytes of the original that text() is made of.
  std::size_t taken() const { return taken_; }

  /// The place in the original whose text before and after it gives text() before and after `place`; nothing where
  /// that is inside characters that have become others. Places must be asked for in ascending order.
  std::optional<std::size_t> original_place(std::size_t place);

 private:
  /// A stretch that the form changes.
  struct Change {
    std::size_t begin, end;  // in text()
    std::size_t original_begin, original_end;
  };

  void add_segment(std::size_t begin, std::size_t end, UnicodeForm form);

  std::string_view original_;
  std::size_t taken_ = 0;
  std::string text_;  // where there are changes
  std::vector<Change> changes_;
  std::size_t next_change_ = 0;
};

}  // namespace quipu
