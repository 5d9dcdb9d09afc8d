#include "cli/command_line.h"

#include <algorithm>
#include <string_view>

namespace quipu {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
}

std::string quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') text += "'\\'";
    text += c;
  }
  text += '\'';
  return text;
}

}  // namespace

std::string command_line(const std::string& tool, int argc, char** argv) {
  std::string text = tool;
  for (int i = 1; i < argc; ++i) {
    text += ' ';
    text += quoted(argv[i]);
  }
  return text;
}

}  // namespace quipu
