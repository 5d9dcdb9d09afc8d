#include "text/unicode_form.h"

#include <doctest/doctest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "text/tokenizer_checks.h"
#include "text/utf8.h"

using namespace quipu;

namespace {

std::string whole(const std::string& text, utf8proc_option_t options) {
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  REQUIRE(size >= 0);
  std::string form(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);
  return form;
}

utf8proc_option_t options(int more) { return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | more); }

const std::vector<std::pair<UnicodeForm, utf8proc_option_t>> kForms = {
    {UnicodeForm::kNfc, options(UTF8PROC_COMPOSE)},
    {UnicodeForm::kNfd, options(UTF8PROC_DECOMPOSE)},
    {UnicodeForm::kNfkc, options(UTF8PROC_COMPOSE | UTF8PROC_COMPAT)},
    {UnicodeForm::kNfkd, options(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT)}};

void check(const std::string& text) {
  for (const auto& [form, library] : kForms) {
    INFO(name_of(form));
    NormalizedText made(text, form, false);
    if (made.text() != whole(text, library)) FAIL("differs: " << text);
    CHECK(made.taken() == text.size());
    for (std::size_t place = 0; place <= made.text().size(); ++place) {
      const auto original = made.original_place(place);
      if (!original || (static_cast<unsigned char>(text[*original]) & 0xc0) == 0x80) continue;
      if (whole(text.substr(0, *original), library) != made.text().substr(0, place))
        FAIL("place " << place << ": " << text);
      if (whole(text.substr(*original), library) != made.text().substr(place)) FAIL("place " << place << ": " << text);
    }
    const NormalizedText open(text, form, true);
    for (const char* more : {"\u0301", "a", "\u11a8"}) {
      CHECK(whole(text + more, library).substr(0, open.text().size()) == open.text());
    }
  }
}

}  // namespace

TEST_CASE("unicode_form: stretch by stretch it is the form of the whole, and places answer each other") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    check(random_unicode(seed, 1 + seed % 30));
    check(mixed_text(seed, false));
  }
  check("a\u0323\u0307 \u1100\u1161\u11a8 \uac00\u11a8 \u0f71\u0f74\u0f73 e\u0301\u0301 \u1e9b\u0323 \u212b \u2126");
}

TEST_CASE("unicode_form: each character of Unicode behind and before a letter") {
  for (std::uint32_t code = 0xa0; code < 0x20000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text = "e";
    append_utf8(text, code);
    const std::string marked = text + "\u0323\u0301";
    for (const auto& [form, library] : kForms) {
      if (NormalizedText(marked, form, false).text() != whole(marked, library)) FAIL(code << " in " << name_of(form));
    }
  }
}
