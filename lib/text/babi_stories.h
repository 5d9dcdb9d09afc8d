#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace quipu {

/// A question of bAbI with the facts that were told before it.
struct BabiQuestion {
  std::vector<std::string> facts;
  std::string question, answer;

  /// Facts and question as one text.
  std::string key() const;
};

/// Reads a file of bAbI's own format: lines `N fact` and `N question TAB answer TAB numbers of the facts it needs`; N
/// starts again at 1 with each story. `name` opens messages. Throws InputError with the number of a line that is
/// neither.
std::vector<BabiQuestion> parse_babi(std::string_view text, const std::string& name);

}  // namespace quipu
