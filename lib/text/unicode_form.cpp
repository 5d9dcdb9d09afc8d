#include "text/unicode_form.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/error.h"
#include "text/utf8.h"

namespace quipu {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"", "NFC", "NFD", "NFKC", "NFKD"};

bool is_compatible(UnicodeForm form) { return form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd; }
bool composes(UnicodeForm form) { return form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc; }

utf8proc_option_t options_of(UnicodeForm form) {
  const int options = UTF8PROC_STABLE | (composes(form) ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (is_compatible(form) ? UTF8PROC_COMPAT : 0);
  return static_cast<utf8proc_option_t>(options);
}

bool is_hangul_syllable(std::uint32_t code) { return code >= 0xac00 && code <= 0xd7a3; }

/// Whether a character may join with the ones before it: a mark, or the second half of a composition.
bool joins_back(std::uint32_t code) {
  if (code < 0x300) return false;
  if ((code >= 0x1161 && code <= 0x1175) || (code >= 0x11a8 && code <= 0x11c2)) return true;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  if (property->combining_class != 0) return true;
  return property->comb_index >= 0x8000 && property->comb_index != 0xffff;
}

/// Whether a character becomes others, or could; the first of them in any form.
bool decomposes(std::uint32_t code, std::uint32_t& first) {
  first = code;
  if (code < 0xa0) return false;
  if (is_hangul_syllable(code)) return true;
  if (utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->decomp_seqindex == 0xffff) return false;
  std::array<utf8proc_int32_t, 32> codes{};
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data(), codes.size(),
                              static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), nullptr);
  if (count > 0) first = static_cast<std::uint32_t>(codes[0]);
  return true;
}

}  // namespace

std::optional<UnicodeForm> unicode_form(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<UnicodeForm>(i);
  }
  return std::nullopt;
}

std::string_view name_of(UnicodeForm form) { return kNames[static_cast<std::size_t>(form)]; }

NormalizedText::NormalizedText(std::string_view original, UnicodeForm form, bool open) : original_(original) {
  if (form == UnicodeForm::kNone) {
    taken_ = original.size();
    return;
  }
  std::size_t begin = 0;  // of the segment: a character and those that may join with it
  bool plain = true;      // it is one character that stays as it is
  std::size_t at = 0;
  while (at < original.size()) {
    const auto lead = static_cast<unsigned char>(original[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    bool keeps = true, joins = false;
    if (lead >= 0xc2 && size > 1) {
      std::uint32_t first = 0;
      const std::uint32_t code = utf8_code(original.substr(at, size));
      keeps = !decomposes(code, first) || (is_hangul_syllable(code) && composes(form));
      joins = joins_back(code) || (first != code && joins_back(first));
    }
    if (!joins && at > begin) {
      if (!plain) add_segment(begin, at, form);
      begin = at;
      plain = true;
    }
    plain = plain && keeps && !joins;
    at += size;
  }
  if (open) {
    taken_ = begin;
  } else {
    if (!plain) add_segment(begin, at, form);
    taken_ = at;
  }
  if (changes_.empty()) return;
  text_ += original_.substr(changes_.back().original_end, taken_ - changes_.back().original_end);
}

void NormalizedText::add_segment(std::size_t begin, std::size_t end, UnicodeForm form) {
  utf8proc_uint8_t* made = nullptr;
  const std::string_view segment = original_.substr(begin, end - begin);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(segment.data()),
                                             static_cast<utf8proc_ssize_t>(segment.size()), &made, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0) {
    throw InputError("text: cannot be brought into {} at byte {} ({})", name_of(form), begin, utf8proc_errmsg(size));
  }
  const std::string_view form_text(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  if (form_text == segment) return;
  const std::size_t sent = changes_.empty() ? 0 : changes_.back().original_end;
  text_ += original_.substr(sent, begin - sent);
  changes_.push_back({text_.size(), text_.size() + form_text.size(), begin, end});
  text_ += form_text;
}

std::optional<std::size_t> NormalizedText::original_place(std::size_t place) {
  while (next_change_ < changes_.size() && changes_[next_change_].end <= place) ++next_change_;
  if (next_change_ < changes_.size() && changes_[next_change_].begin < place) return std::nullopt;
  if (next_change_ == 0) return place;
  const Change& before = changes_[next_change_ - 1];
  return before.original_end + (place - before.end);
}

}  // namespace quipu
