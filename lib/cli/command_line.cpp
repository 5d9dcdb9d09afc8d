#include "cli/command_line.h"

#include <string_view>

namespace quipu {
namespace {

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text(1, '\'');
  for (const char c : word) {
    if (c == '\'') text.append("'\\'");  // ends the quotes, an escaped quote, and begins them again
    text.push_back(c);
  }
  text.push_back('\'');
  return text;
}

}  // namespace

std::string command_line(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string_view word = argv[i];
    if (i == 0) word.remove_prefix(word.rfind('/') + 1);
    if (i > 0) text.push_back(' ');
    text.append(quoted(word));
  }
  return text;
}

}  // namespace quipu
