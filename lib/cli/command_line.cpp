#include "cli/command_line.h"

#include <string_view>

namespace quipu {
namespace {

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string command_line(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string_view word = argv[i];
    if (i == 0) word.remove_prefix(word.rfind('/') + 1);
    text += (i == 0 ? "" : " ") + quoted(word);
  }
  return text;
}

}  // namespace quipu
