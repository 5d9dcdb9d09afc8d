#include "train/protocol.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/number.h"

namespace quipu {
namespace {

constexpr Index kMaxWindow = Index{1} << 30;

Index parse_size(std::string_view text) { return parse_integer("--protocol", text, 1, kMaxWindow); }

[[noreturn]] void throw_unknown(const std::string& text) {
  throw UsageError("--protocol {}: is unknown; give stream, blocks:W, slide:W:S or last:N/W, as in blocks:64", text);
}

/// The two numbers of "A<separator>B".
std::pair<Index, Index> parse_pair(const std::string& text, std::string_view numbers, char separator) {
  const std::size_t at = numbers.find(separator);
  if (at == numbers.npos) throw_unknown(text);
  return {parse_size(numbers.substr(0, at)), parse_size(numbers.substr(at + 1))};
}

Protocol sliding(const std::string& text, Index window, Index stride) {
  if (stride > window)
    throw UsageError("--protocol {}: {} new tokens do not fit a window of {}; some would never be scored", text, stride,
                     window);
  return {window, stride, text};
}

}  // namespace

std::string Protocol::context() const {
  if (is_stream()) return "all tokens of the document before it";
  if (stride == window) return fmt::format("1 to {} tokens", window);
  return fmt::format("{} to {} tokens (fewer among the first {} of a document)", window - stride + 1, window,
                     window - stride + 1);
}

Protocol parse_protocol(const std::string& text) {
  if (text == "stream") return {};
  const std::size_t colon = text.find(':');
  if (colon == text.npos) throw_unknown(text);
  const std::string kind = text.substr(0, colon);
  const std::string_view numbers = std::string_view(text).substr(colon + 1);
  if (kind == "blocks") return {parse_size(numbers), parse_size(numbers), text};
  if (kind == "slide") {
    const auto [window, stride] = parse_pair(text, numbers, ':');
    return sliding(text, window, stride);
  }
  if (kind != "last") throw_unknown(text);
  const auto [stride, window] = parse_pair(text, numbers, '/');
  return sliding(text, window, stride);
}

Protocol block_protocol(Index window) { return {window, window, fmt::format("blocks:{}", window)}; }

}  // namespace quipu
