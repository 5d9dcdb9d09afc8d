#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Config;
}  // namespace CLI

namespace quipu {

/// `key = value` in a configuration file.
struct ConfigEntry {
  std::vector<std::string> section;  // the subcommand: from [text], or from a dotted key; empty at the top
  std::string key;
  std::vector<std::string> values;
  bool is_array = false;
  int line = 0;
};

/// Reads the subset of TOML that options need: `key = value`, dotted keys, `[section]`, comments, "strings" with
/// escapes, 'literal strings', numbers, true and false, arrays of these (over several lines where needed). A bare word
/// may stand for a string. Not TOML's tables of tables, multi-line strings, inline tables and dates.
/// Throws UsageError, naming `file` and the line; a key that stands twice in its section is an error.
std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& file);

/// The reader that `root` uses for --config. It sets every option that the command line has not set; a key without a
/// section belongs to the tool or else to the subcommand in use; sections of other subcommands are checked for their
/// keys and passed over. Throws UsageError, naming file, line and key.
std::shared_ptr<CLI::Config> config_reader(CLI::App& root);

}  // namespace quipu
