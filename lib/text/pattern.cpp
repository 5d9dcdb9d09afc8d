#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "base/error.h"
#include "text/escape.h"
#include "text/pattern_syntax.h"

namespace quipu {

namespace {

constexpr std::uint32_t kMaxSteps = 50'000'000;
constexpr std::size_t kStackBytes = 1 << 15;
constexpr std::size_t kMaxStackBytes = 1 << 26;

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

std::string message_of(int error) {
  if (error == PCRE2_ERROR_MATCHLIMIT) return "too many steps";
  PCRE2_UCHAR text[256];
  return pcre2_get_error_message(error, text, sizeof text) < 0 ? fmt::format("error {}", error)
                                                               : reinterpret_cast<const char*>(text);
}

template <typename T>
T require(T made) {
  if (!made) throw std::bad_alloc();
  return made;
}

}  // namespace

struct PatternScratch::Parts {
  std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>> match{require(pcre2_match_data_create(1, nullptr))};
  std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>> context{
      require(pcre2_match_context_create(nullptr))};
  std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>> stack{
      require(pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr))};
};

PatternScratch::PatternScratch() : parts_(std::make_unique<Parts>()) {
  pcre2_set_match_limit(parts_->context.get(), kMaxSteps);
  pcre2_jit_stack_assign(parts_->context.get(), nullptr, parts_->stack.get());
}
PatternScratch::~PatternScratch() = default;

struct Pattern::Code {
  std::unique_ptr<pcre2_code, Freer<pcre2_code_free>> compiled;
  bool jit = false;
};

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern::Pattern(std::string_view pcre2, bool allow_empty) : code_(std::make_unique<Code>()) {
  int error = 0;
  PCRE2_SIZE where = 0;
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
  code_->compiled.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre2.data()), pcre2.size(), kOptions, &error, &where, nullptr));
  if (!code_->compiled) {
    throw InputError("pattern '{}': is no regular expression at byte {} ({}); repair it", escape_text(pcre2), where,
                     message_of(error));
  }
  std::uint32_t empty = 0, behind = 0;
  pcre2_pattern_info(code_->compiled.get(), PCRE2_INFO_MATCHEMPTY, &empty);
  pcre2_pattern_info(code_->compiled.get(), PCRE2_INFO_MAXLOOKBEHIND, &behind);
  if (empty != 0 && !allow_empty) {
    throw InputError("pattern '{}': can match nothing at all; make it match at least one character",
                     escape_text(pcre2));
  }
  if (behind != 0) {
    throw InputError("pattern '{}': looks back {} characters, 0 are read here; rewrite it without", escape_text(pcre2),
                     behind);
  }
  code_->jit = pcre2_jit_compile(code_->compiled.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
}

Pattern Pattern::of_pcre2(std::string_view regex) { return Pattern(regex, true); }

Pattern::Pattern(std::string_view regex) : Pattern("", true) {  // replaced below
  const PatternSyntax syntax = read_pattern(regex);
  *this = Pattern(syntax.pcre2, false);
  keeps_blanks_apart_ = !syntax.letter_before_space;
  takes_any_space_ = syntax.takes_any_space;
}

Pattern::Found Pattern::find(std::string_view text, bool open, PatternScratch& scratch) const {
  const std::uint32_t options = PCRE2_NO_UTF_CHECK | (open ? PCRE2_PARTIAL_HARD : 0U);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* match = scratch.parts_->match.get();
  pcre2_match_context* context = scratch.parts_->context.get();
  const pcre2_code* code = code_->compiled.get();
  const int status = code_->jit ? pcre2_jit_match(code, subject, text.size(), 0, options, match, context)
                                : pcre2_match(code, subject, text.size(), 0, options, match, context);
  if (status == PCRE2_ERROR_NOMATCH) return {};
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match);
  if (status == PCRE2_ERROR_PARTIAL) return {Found::Kind::kOpen, ends[0], 0};
  if (status < 0) {
    throw InputError("pattern: its search in a text of {} bytes fails ({}); use a simpler pattern", text.size(),
                     message_of(status));
  }
  return {Found::Kind::kMatch, ends[0], ends[1]};
}

}  // namespace quipu
